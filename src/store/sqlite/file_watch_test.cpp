// A store whose file is removed, replaced or cut while it is open: it acknowledges nothing that would be lost.
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

class MissingFiles : public ::testing::Test {
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
  // The store accepts changes again shortly after the file is back.
  void expect_accepted(const std::string& key) {
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

TEST_F(MissingFiles, RemovedFileIsNoticedUntilItIsBack) {
  ASSERT_TRUE(claim("first"));
  fs::rename(file, folder.file("moved"));
  expect_refused("was removed");
  fs::rename(folder.file("moved"), file);
  expect_accepted("later");
  store.reset();
  open();
  for (const char* key : {"first", "later"})
    EXPECT_TRUE(std::holds_alternative<Busy>(claim(key).value())) << key << " is in the file";
}

TEST_F(MissingFiles, RemovedFileIsNoticedWithoutARequest) {
  fs::remove(file);
  while (!store->find_failure()) std::this_thread::yield();
  EXPECT_EQ(store->find_failure()->code, Code::STORE_UNAVAILABLE);
}

TEST_F(MissingFiles, ReplacingFileIsNotWritten) {
  ASSERT_TRUE(claim("first"));
  fs::rename(file, folder.file("moved"));
  std::ofstream(file) << "another file";
  expect_refused("was replaced");
  store.reset();
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  EXPECT_EQ(line, "another file");
  EXPECT_TRUE(fs::exists(log)) << "the log still has the acknowledged claim";
  fs::rename(folder.file("moved"), file);
  open();
  EXPECT_TRUE(std::holds_alternative<Busy>(claim("first").value()));
}

TEST_F(MissingFiles, CutFileIsNoticedAndNotOpenedAsNew) {
  ASSERT_TRUE(claim("first"));
  ASSERT_EQ(::truncate(file.c_str(), 0), 0);
  expect_refused("was cut short");
  store.reset();
  const auto again = SqliteStore::open({.file = file}, clock, random);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::STORE_FORMAT);
  EXPECT_GT(fs::file_size(log), 0u) << "the log was not touched";
}

TEST_F(MissingFiles, RemovedLogIsNoticedAndNothingIsLost) {
  ASSERT_TRUE(claim("first"));
  fs::remove(log);
  expect_refused("-wal was removed");
  store.reset();
  open();
  EXPECT_TRUE(std::holds_alternative<Busy>(claim("first").value())) << "the close has copied the claim into the file";
}

TEST_F(MissingFiles, EmptyFileAndEmptyLogAreANewStore) {
  store.reset();
  const std::string fresh = folder.file("fresh.db");
  std::ofstream(fresh).flush();
  std::ofstream(fresh + "-wal").flush();
  EXPECT_TRUE(SqliteStore::open({.file = fresh}, clock, random));
}

}  // namespace
}  // namespace latchkey
