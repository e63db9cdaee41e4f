#include "store/postgres/under_way.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNow = 100ms;
constexpr std::size_t kSome = UnderWay::kCrowd / 2;

TEST(UnderWay, WithLanesToSpareNothingWaits) {
  UnderWay lanes(64);
  EXPECT_FALSE(lanes.are_soon_back(kNow));
  lanes.set_out(63, kNow);
  EXPECT_FALSE(lanes.are_soon_back(kNow));
}

TEST(UnderWay, TwoThatHaveJustSetOutAreSoonBack) {
  UnderWay lanes(64);
  lanes.set_out(1, kNow);
  const auto second = lanes.set_out(63, kNow);
  EXPECT_TRUE(lanes.are_soon_back(kNow + 4ms));
  lanes.come_back(second);
  EXPECT_FALSE(lanes.are_soon_back(kNow + 4ms));
}

TEST(UnderWay, WhereFewComeNobodyWaits) {
  UnderWay lanes(64);
  lanes.set_out(kSome, kNow);
  const auto second = lanes.set_out(kSome - 1, kNow);
  EXPECT_FALSE(lanes.are_soon_back(kNow)) << "no crowd";
  lanes.come_back(second);
  lanes.set_out(kSome, kNow);
  EXPECT_TRUE(lanes.are_soon_back(kNow)) << "a crowd";
}

TEST(UnderWay, WhoTakesLongIsNotWaitedFor) {
  UnderWay lanes(64);
  lanes.set_out(kSome, kNow);
  lanes.set_out(kSome, kNow + 3ms);
  EXPECT_TRUE(lanes.are_soon_back(kNow + 4ms));
  EXPECT_FALSE(lanes.are_soon_back(kNow + UnderWay::kSoonBack));
  lanes.set_out(kSome, kNow + 5ms);
  EXPECT_TRUE(lanes.are_soon_back(kNow + 5ms)) << "another two";
}

TEST(UnderWay, NorIsWhoCarriesMuch) {
  UnderWay lanes(64);
  lanes.set_out(kSome, kNow);
  const auto full = lanes.set_out(64, kNow);
  EXPECT_FALSE(lanes.are_soon_back(kNow));
  lanes.come_back(full);
}

}  // namespace
}  // namespace latchkey::pg
