// While the writer is stalled in a batch, repeats of completed runs still get their reply.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "store/sqlite/sqlite_store.hpp"
#include "support/folder.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class StalledWriter : public ::testing::Test {
 protected:
  template <class T>
  static std::pair<Done<T>, std::future<Result<T>>> expect() {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto answer = promise->get_future();
    return {[promise](Result<T> reply) { promise->set_value(std::move(reply)); }, std::move(answer)};
  }
  std::future<Result<ClaimReply>> claim(ClaimRequest request) {
    auto [done, answer] = expect<ClaimReply>();
    store->claim(std::move(request), std::move(done));
    return std::move(answer);
  }
  Won win(const std::string& key) { return std::get<Won>(*claim(a_claim(key)).get()); }

  const Folder folder;
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<SqliteStore> store =
      std::move(*SqliteStore::open({.file = folder.file("latchkey.db")}, clock, random));
};

TEST_F(StalledWriter, ReplaysDoNotWaitForTheWriter) {
  const Won done = win("done");
  auto [settled, ended] = expect<std::vector<SettleReply>>();
  store->settle({{{}, done.run.id(), done.fence, Complete{"r", {}}}}, std::move(settled));
  ASSERT_TRUE(ended.get());

  const Won slow = win("slow");
  std::promise<void> entered, leave;
  auto [finished, outcome] = expect<SettleReply>();
  store->settle_with(
      {{}, slow.run.id(), slow.fence, {}},
      [&](sqlite3*) -> Ending {
        entered.set_value();
        leave.get_future().wait();
        return Complete{"late", {}};
      },
      std::move(finished));
  entered.get_future().wait();

  // At first the stall is not known. These claims wait in the queue until a later claim finds the writer stalled and
  // replies to queued repeats, too.
  auto early = claim(a_claim("done"));
  auto early_fresh = claim(a_claim("early"));
  std::optional<ClaimReply> replay;
  for (int tries = 0; tries < 1000 && !replay; ++tries) {
    auto answer = claim(a_claim("done"));
    if (answer.wait_for(10ms) == std::future_status::ready) replay = *answer.get();
  }
  ASSERT_TRUE(replay && std::holds_alternative<Replay>(*replay));
  ASSERT_EQ(early.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(std::holds_alternative<Replay>(*early.get()));
  EXPECT_EQ(early_fresh.wait_for(0s), std::future_status::timeout) << "a new key needs a write";
  EXPECT_EQ(std::get<Replay>(*replay).run.as<Completed>()->result, "r");
  ClaimRequest other = a_claim("done");
  other.fingerprint = kOther;
  auto mismatch = claim(other);
  ASSERT_EQ(mismatch.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(std::holds_alternative<Mismatch>(*mismatch.get()));
  auto fresh = claim(a_claim("fresh"));
  EXPECT_EQ(fresh.wait_for(20ms), std::future_status::timeout) << "a new key needs a write";
  leave.set_value();
  EXPECT_TRUE(std::holds_alternative<Won>(*early_fresh.get())) << "the claim stayed in the queue";
  EXPECT_TRUE(std::holds_alternative<Won>(*fresh.get()));
  EXPECT_TRUE(outcome.get());
}

}  // namespace
}  // namespace latchkey
