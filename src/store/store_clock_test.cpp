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

}  // namespace
}  // namespace latchkey
