// Few requests wait for lanes that are soon back (CoalescingPolicy). They must not wait for those that are not.
#include "conformance/store_test.hpp"
#include "store/postgres/coalescing_policy.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/stopped_clock.hpp"

namespace latchkey {
namespace {

using pg::CoalescingPolicy;

class PostgresLanes : public PostgresStores {
 protected:
  ~PostgresLanes() override { proxy_.cut_all(); }

  std::future<Result<ClaimReply>> claim(const std::string& key) {
    auto told = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(a_claim(key), [told](Result<ClaimReply> reply) { told->set_value(std::move(reply)); });
    return told->get_future();
  }
  std::future<bool> enqueue(std::size_t count) {
    auto told = std::make_shared<std::promise<bool>>();
    store_->enqueue({count, EnqueueRequest{.function = "f"}},
                    [told](const Result<std::vector<EnqueueReply>>& replies) { told->set_value(replies.has_value()); });
    return told->get_future();
  }
  // Two lanes whose commits are not heard of, each with so many requests.
  std::vector<std::future<bool>> fall_silent(std::size_t requests) {
    std::vector<std::future<bool>> silent;
    for (int lane = 0; lane < 2; ++lane) {
      proxy_.arm({FaultAt::commit_asked, FaultHow::swallow});
      silent.push_back(enqueue(requests));
      EXPECT_TRUE(comes_true([&] { return proxy_.fired() == silent.size(); })) << "the test did not test";
    }
    return silent;
  }
  static bool has_won(std::future<Result<ClaimReply>>& answer) {
    const auto reply = answer.get();
    return reply && std::holds_alternative<Won>(*reply);
  }

  static constexpr auto kSilence = 5s;
  StoppedClock time_;  // as it seems to the store, two that have set out have done so just now
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 4, .reply_max = kSilence}, time_);
};

TEST_F(PostgresLanes, AFewWaitForTwoThatAreSoonBackAndNotWhenTheyTakeLong) {
  auto silent = fall_silent(CoalescingPolicy::kRequestsMin / 2);
  auto few = claim("c");
  EXPECT_EQ(few.wait_for(100ms), std::future_status::timeout) << "it did not wait for them";
  auto many = enqueue(100);
  EXPECT_EQ(many.wait_for(kSilence / 2), std::future_status::ready) << "many waited, too";
  EXPECT_EQ(few.wait_for(kSilence / 2), std::future_status::ready) << "and did not take it along";
  EXPECT_TRUE(has_won(few));

  // Nothing else comes that would wake a lane.
  auto alone = claim("d");
  EXPECT_EQ(alone.wait_for(100ms), std::future_status::timeout) << "it did not wait for them";
  time_.let_go();
  ASSERT_EQ(alone.wait_for(kSilence / 2), std::future_status::ready) << "it waits for the silent ones";
  EXPECT_TRUE(has_won(alone));
  for (auto& one : silent) EXPECT_TRUE(one.get());
}

TEST_F(PostgresLanes, WhereNoCrowdIsUnderWayNobodyWaits) {
  auto silent = fall_silent(1);
  auto third = claim("c");
  ASSERT_EQ(third.wait_for(kSilence / 2), std::future_status::ready) << "it waits for the silent ones";
  EXPECT_TRUE(has_won(third));
  time_.let_go();
  for (auto& one : silent) EXPECT_TRUE(one.get());
}

}  // namespace
}  // namespace latchkey
