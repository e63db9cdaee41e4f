#include "store/store_clock.hpp"

#include <gtest/gtest.h>

#include "support/standings.hpp"

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

TEST(StoreClock, GoesOnFromItsMarkAtASteadyPaceAfterAStepBack) {
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

TEST(StoreClock, StartsAtTheMarkOfItsLastLife) {
  ManualClock wall(kNoon);
  wall.advance(7s);
  StoreClock clock(wall, kNoon + 1h);
  EXPECT_EQ(clock.now(), kNoon + 1h);
  wall.advance(3s);
  EXPECT_EQ(clock.now(), kNoon + 1h + 3s);
}

// Of which each host has one.
TEST(StoreClock, OneThatOthersGoByComesTogetherWithTheWallClockAgain) {
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
  EXPECT_EQ(last, kNoon + 6930ms) << "a hundredth slower, however often it is asked";
  wall.advance(993s);
  EXPECT_EQ(clock.now(), kNoon + 990s) << "just caught up";
  wall.advance(20s);
  EXPECT_EQ(clock.now(), kNoon + 1010s) << "and at full pace from then on";
}

TEST(StoreClock, GoesNoEarlierThanOthersHaveBeen) {
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
