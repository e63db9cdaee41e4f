#include "store/postgres/coalescing_policy.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNow = 100ms;
constexpr std::size_t kSome = CoalescingPolicy::kRequestsMin / 2;

TEST(CoalescingPolicy, OneBatchInFlightIsNotWaitedFor) {
  CoalescingPolicy policy(64);
  EXPECT_FALSE(policy.should_wait_for_inflight(kNow));
  policy.batch_started(63, kNow);
  EXPECT_FALSE(policy.should_wait_for_inflight(kNow));
}

TEST(CoalescingPolicy, TwoRecentBatchesAreWaitedFor) {
  CoalescingPolicy policy(64);
  policy.batch_started(1, kNow);
  const auto second = policy.batch_started(63, kNow);
  EXPECT_TRUE(policy.should_wait_for_inflight(kNow + 4ms));
  policy.batch_finished(second);
  EXPECT_FALSE(policy.should_wait_for_inflight(kNow + 4ms));
}

TEST(CoalescingPolicy, FewRequestsAreNotWaitedFor) {
  CoalescingPolicy policy(64);
  policy.batch_started(kSome, kNow);
  const auto second = policy.batch_started(kSome - 1, kNow);
  EXPECT_FALSE(policy.should_wait_for_inflight(kNow)) << "one request too few";
  policy.batch_finished(second);
  policy.batch_started(kSome, kNow);
  EXPECT_TRUE(policy.should_wait_for_inflight(kNow));
}

TEST(CoalescingPolicy, SlowBatchIsNotWaitedFor) {
  CoalescingPolicy policy(64);
  policy.batch_started(kSome, kNow);
  policy.batch_started(kSome, kNow + 3ms);
  EXPECT_TRUE(policy.should_wait_for_inflight(kNow + 4ms));
  EXPECT_FALSE(policy.should_wait_for_inflight(kNow + CoalescingPolicy::kRecent));
  policy.batch_started(kSome, kNow + 5ms);
  EXPECT_TRUE(policy.should_wait_for_inflight(kNow + 5ms)) << "two others are recent";
}

TEST(CoalescingPolicy, LargeBatchIsNotWaitedFor) {
  CoalescingPolicy policy(64);
  policy.batch_started(kSome, kNow);
  const auto large = policy.batch_started(64, kNow);
  EXPECT_FALSE(policy.should_wait_for_inflight(kNow));
  policy.batch_finished(large);
}

}  // namespace
}  // namespace latchkey::pg
