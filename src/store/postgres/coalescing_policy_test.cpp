#include "store/postgres/coalescing_policy.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNow = 100ms;
constexpr std::size_t kSome = CoalescingPolicy::kQuarantineThreshold / 2;

TEST(CoalescingPolicy, WithLanesToSpareNothingWaits) {
  CoalescingPolicy lanes(64);
  EXPECT_FALSE(lanes.should_wait_for_inflight(kNow));
  lanes.batch_started(63, kNow);
  EXPECT_FALSE(lanes.should_wait_for_inflight(kNow));
}

TEST(CoalescingPolicy, TwoThatHaveJustSetOutAreSoonBack) {
  CoalescingPolicy lanes(64);
  lanes.batch_started(1, kNow);
  const auto second = lanes.batch_started(63, kNow);
  EXPECT_TRUE(lanes.should_wait_for_inflight(kNow + 4ms));
  lanes.batch_finished(second);
  EXPECT_FALSE(lanes.should_wait_for_inflight(kNow + 4ms));
}

TEST(CoalescingPolicy, WhereFewComeNobodyWaits) {
  CoalescingPolicy lanes(64);
  lanes.batch_started(kSome, kNow);
  const auto second = lanes.batch_started(kSome - 1, kNow);
  EXPECT_FALSE(lanes.should_wait_for_inflight(kNow)) << "no crowd";
  lanes.batch_finished(second);
  lanes.batch_started(kSome, kNow);
  EXPECT_TRUE(lanes.should_wait_for_inflight(kNow)) << "a crowd";
}

TEST(CoalescingPolicy, WhoTakesLongIsNotWaitedFor) {
  CoalescingPolicy lanes(64);
  lanes.batch_started(kSome, kNow);
  lanes.batch_started(kSome, kNow + 3ms);
  EXPECT_TRUE(lanes.should_wait_for_inflight(kNow + 4ms));
  EXPECT_FALSE(lanes.should_wait_for_inflight(kNow + CoalescingPolicy::kSoonBack));
  lanes.batch_started(kSome, kNow + 5ms);
  EXPECT_TRUE(lanes.should_wait_for_inflight(kNow + 5ms)) << "another two";
}

TEST(CoalescingPolicy, NorIsWhoCarriesMuch) {
  CoalescingPolicy lanes(64);
  lanes.batch_started(kSome, kNow);
  const auto full = lanes.batch_started(64, kNow);
  EXPECT_FALSE(lanes.should_wait_for_inflight(kNow));
  lanes.batch_finished(full);
}

}  // namespace
}  // namespace latchkey::pg
