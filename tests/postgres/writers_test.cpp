// A small backlog waits for in-flight batches that end soon (CoalescingPolicy). It must not wait for slow batches.
#include "conformance/store_test.hpp"
#include "store/postgres/coalescing_policy.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/stopped_clock.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

using pg::CoalescingPolicy;

class PostgresWriters : public PostgresStores {
 protected:
  ~PostgresWriters() override { proxy_.cut_all(); }

  std::future<Result<ClaimReply>> claim(const std::string& key) {
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(a_claim(key), [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  std::future<bool> enqueue(std::size_t count) {
    auto promise = std::make_shared<std::promise<bool>>();
    store_->enqueue(
        {count, EnqueueRequest{.function = "f"}},
        [promise](const Result<std::vector<EnqueueReply>>& replies) { promise->set_value(replies.has_value()); });
    return promise->get_future();
  }
  // Makes two writers wait for lost commit replies, each with this many requests.
  std::vector<std::future<bool>> block_two_writers(std::size_t requests) {
    std::vector<std::future<bool>> blocked;
    for (int writer = 0; writer < 2; ++writer) {
      proxy_.arm({FaultAt::commit_request, FaultHow::blackhole});
      blocked.push_back(enqueue(requests));
      EXPECT_TRUE(wait_until([&] { return proxy_.fired() == blocked.size(); })) << "the fault did not occur";
    }
    return blocked;
  }
  static bool has_won(std::future<Result<ClaimReply>>& answer) {
    const auto reply = answer.get();
    return reply && std::holds_alternative<Won>(*reply);
  }

  static constexpr auto kSilence = 5s;
  StoppedClock time_;  // for the store, the two blocked batches have just started
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 4, .reply_max = kSilence}, time_);
};

TEST_F(PostgresWriters, SmallBacklogWaitsForRecentBatches) {
  auto blocked = block_two_writers(CoalescingPolicy::kRequestsMin / 2);
  auto few = claim("c");
  EXPECT_EQ(few.wait_for(100ms), std::future_status::timeout) << "it did not wait for the in-flight batches";
  auto many = enqueue(100);
  EXPECT_EQ(many.wait_for(kSilence / 2), std::future_status::ready) << "the large backlog waited, too";
  EXPECT_EQ(few.wait_for(kSilence / 2), std::future_status::ready) << "the large backlog did not include the claim";
  EXPECT_TRUE(has_won(few));

  // No other call wakes a writer.
  auto alone = claim("d");
  EXPECT_EQ(alone.wait_for(100ms), std::future_status::timeout) << "it did not wait for the in-flight batches";
  time_.resume();
  ASSERT_EQ(alone.wait_for(kSilence / 2), std::future_status::ready) << "it waits for the blocked writers";
  EXPECT_TRUE(has_won(alone));
  for (auto& one : blocked) EXPECT_TRUE(one.get());
}

TEST_F(PostgresWriters, LightLoadDoesNotWait) {
  auto blocked = block_two_writers(1);
  auto third = claim("c");
  ASSERT_EQ(third.wait_for(kSilence / 2), std::future_status::ready) << "it waits for the blocked writers";
  EXPECT_TRUE(has_won(third));
  time_.resume();
  for (auto& one : blocked) EXPECT_TRUE(one.get());
}

}  // namespace
}  // namespace latchkey
