// A store whose file is taken away under it: nothing is acknowledged that would be lost.
#include "store/sqlite/file_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "store/sqlite/sqlite_store.hpp"
#include "support/folder.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class TakenAway : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void open() {
    auto opened = SqliteStore::open({.file = file, .refuse_for = 5ms}, clock, random);
    ASSERT_TRUE(opened) << to_string(opened.error());
    store = std::move(*opened);
  }
  Result<ClaimReply> claim(const std::string& key) {
    std::promise<Result<ClaimReply>> promise;
    store->claim(a_claim(key), [&](Result<ClaimReply> reply) { promise.set_value(std::move(reply)); });
    return promise.get_future().get();
  }
  void expect_refused(const std::string& why) {
    const auto refused = claim("new");
    ASSERT_FALSE(refused) << why;
    EXPECT_EQ(refused.error().code, Code::STORE_UNAVAILABLE);
    EXPECT_NE(refused.error().detail.find(why), std::string::npos) << refused.error().detail;
    ASSERT_TRUE(store->find_failure());
  }
  // Refusing ends a moment after the file is back.
  void expect_taken_up(const std::string& key) {
    while (!claim(key)) std::this_thread::yield();
    EXPECT_TRUE(claim(key));
    EXPECT_FALSE(store->find_failure());
  }

  const Folder folder;
  const std::string file = folder.file("latchkey.db"), log = file + "-wal";
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<SqliteStore> store;
};

TEST_F(TakenAway, ARemovedFileIsNoticedBeforeTheNextCommitAndWhenItIsBack) {
  ASSERT_TRUE(claim("kept"));
  fs::rename(file, folder.file("moved"));
  expect_refused("was removed");
  fs::rename(folder.file("moved"), file);
  expect_taken_up("later");
  store.reset();
  open();
  for (const char* key : {"kept", "later"})
    EXPECT_TRUE(std::holds_alternative<Busy>(claim(key).value())) << key << ": it is in the file";
}

TEST_F(TakenAway, ItIsNoticedWithoutAnybodyAsking) {
  fs::remove(file);
  while (!store->find_failure()) std::this_thread::yield();
  EXPECT_EQ(store->find_failure()->code, Code::STORE_UNAVAILABLE);
}

TEST_F(TakenAway, AnotherFileInItsPlaceIsNotWritten) {
  ASSERT_TRUE(claim("kept"));
  fs::rename(file, folder.file("moved"));
  std::ofstream(file) << "somebody else's";
  expect_refused("was replaced");
  store.reset();
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  EXPECT_EQ(line, "somebody else's");
  EXPECT_TRUE(fs::exists(log)) << "what was acknowledged is in the log still";
  fs::rename(folder.file("moved"), file);
  open();
  EXPECT_TRUE(std::holds_alternative<Busy>(claim("kept").value()));
}

TEST_F(TakenAway, AFileThatWasCutIsNoticedAndNotTakenForANewOne) {
  ASSERT_TRUE(claim("kept"));
  ASSERT_EQ(::truncate(file.c_str(), 0), 0);
  expect_refused("was cut short");
  store.reset();
  const auto again = SqliteStore::open({.file = file}, clock, random);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::STORE_FORMAT);
  EXPECT_GT(fs::file_size(log), 0u) << "left alone";
}

TEST_F(TakenAway, ARemovedLogIsNoticedAndNothingIsLost) {
  ASSERT_TRUE(claim("kept"));
  fs::remove(log);
  expect_refused("-wal was removed");
  store.reset();
  open();
  EXPECT_TRUE(std::holds_alternative<Busy>(claim("kept").value())) << "closing has copied it into the file";
}

TEST_F(TakenAway, AFirstStartThatDiedBeforeItWroteStartsAgain) {
  store.reset();
  const std::string fresh = folder.file("fresh.db");
  std::ofstream(fresh).flush();
  std::ofstream(fresh + "-wal").flush();
  EXPECT_TRUE(SqliteStore::open({.file = fresh}, clock, random));
}

}  // namespace
}  // namespace latchkey
