#include "store/store_clock.hpp"

#include <gtest/gtest.h>

#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

TEST(StoreClock, FollowsTheWallClockForwards) {
  ManualClock wall(kNoon);
  StoreClock clock(wall);
  EXPECT_EQ(clock.now(), kNoon);
  wall.advance(5s);
  EXPECT_EQ(clock.now(), kNoon + 5s);
  wall.jump(1h);
  EXPECT_EQ(clock.now(), kNoon + 1h + 5s);
}

TEST(StoreClock, ContinuesFromItsMarkAfterAStepBack) {
  ManualClock wall(kNoon);
  StoreClock clock(wall);
  EXPECT_EQ(clock.now(), kNoon);
  wall.jump(-1h);
  EXPECT_EQ(clock.now(), kNoon);
  wall.advance(10s);
  EXPECT_EQ(clock.now(), kNoon + 10s) << "leases still end";
  wall.jump(1h);
  EXPECT_EQ(clock.now(), kNoon + 10s) << "the hour is not counted twice";
}

TEST(StoreClock, StartsAtTheStoredMark) {
  ManualClock wall(kNoon);
  wall.advance(7s);
  StoreClock clock(wall, kNoon + 1h);
  EXPECT_EQ(clock.now(), kNoon + 1h);
  wall.advance(3s);
  EXPECT_EQ(clock.now(), kNoon + 1h + 3s);
}

// Each server has its own clock and shares the mark.
TEST(StoreClock, SharedClockConvergesToWallClock) {
  ManualClock wall(kNoon);
  StoreClock clock(wall, {}, StoreClock::Ahead::slower);
  wall.jump(-10s);
  EXPECT_EQ(clock.now(), kNoon);
  Instant last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    wall.advance(7ms);
    EXPECT_GE(clock.now(), last);
    last = clock.now();
  }
  EXPECT_EQ(last, kNoon + 6930ms) << "one percent slower, for any number of calls";
  wall.advance(993s);
  EXPECT_EQ(clock.now(), kNoon + 990s) << "just caught up";
  wall.advance(20s);
  EXPECT_EQ(clock.now(), kNoon + 1010s) << "and at full pace from then on";
}

TEST(StoreClock, IsNotEarlierThanOtherServers) {
  ManualClock wall(kNoon);
  StoreClock clock(wall, {}, StoreClock::Ahead::slower);
  clock.catch_up(kNoon - 1s);
  EXPECT_EQ(clock.now(), kNoon);
  clock.catch_up(kNoon + 1s);
  EXPECT_EQ(clock.now(), kNoon + 1s);
  wall.advance(5s);
  EXPECT_EQ(clock.now(), kNoon + 5950ms);
}

}  // namespace
}  // namespace latchkey
