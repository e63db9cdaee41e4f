#include "store/postgres/contended_keys.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

using namespace std::chrono_literals;

constexpr auto kQuarantineThreshold = ContendedKeys::kQuarantineThreshold + 1;

TenantKey key_of(const std::string& tenant, std::uint64_t number) { return {make_uuid_v7({}, number, 7), tenant}; }

void hold(ContendedKeys& held, const std::string& tenant, std::uint64_t from, std::uint64_t to, Duration now = 0ms) {
  for (; from <= to; ++from) held.note(key_of(tenant, from), true, now);
}

bool is_quarantined(ContendedKeys& held, const TenantKey& key, Duration now = 0ms) {
  return held.is_quarantined(key.first, key.second, now);
}

std::vector<TenantKey> look(ContendedKeys& held, std::size_t limit) {
  const auto keys = held.next_held(limit);
  for (const auto& key : keys) held.note(key, true, 0ms);
  return keys;
}

TEST(ContendedKeys, TenantsTakeTurns) {
  ContendedKeys held;
  hold(held, "a", 1, 100);
  hold(held, "b", 101, 101);
  hold(held, "c", 102, 103);
  EXPECT_EQ(look(held, 5),
            (std::vector{key_of("a", 1), key_of("b", 101), key_of("c", 102), key_of("a", 2), key_of("c", 103)}));
  EXPECT_EQ(look(held, 3), (std::vector{key_of("a", 3), key_of("b", 101), key_of("c", 102)}));
}

TEST(ContendedKeys, MoreTenantsThanThereIsTimeForHaveTheirTurnLater) {
  ContendedKeys held;
  for (const std::uint64_t i : {1, 2, 3}) hold(held, "t" + std::to_string(i), i, i);
  EXPECT_EQ(look(held, 2), (std::vector{key_of("t1", 1), key_of("t2", 2)}));
  EXPECT_EQ(look(held, 2), (std::vector{key_of("t3", 3), key_of("t1", 1)}));
}

TEST(ContendedKeys, EachOfATenantsHasItsTurn) {
  ContendedKeys held;
  hold(held, "a", 1, 5);
  EXPECT_EQ(look(held, 3), (std::vector{key_of("a", 1), key_of("a", 2), key_of("a", 3)}));
  EXPECT_EQ(look(held, 3), (std::vector{key_of("a", 4), key_of("a", 5), key_of("a", 1)}));
}

TEST(ContendedKeys, NewKeysOfACrowdAreSeenFirst) {
  ContendedKeys held;
  const TenantKey one = key_of("a", 100), other = key_of("a", 101);
  hold(held, "a", 1, kQuarantineThreshold - 1);
  EXPECT_FALSE(is_quarantined(held, one)) << "it is not yet one";
  hold(held, "a", kQuarantineThreshold, kQuarantineThreshold);
  EXPECT_TRUE(is_quarantined(held, one));
  EXPECT_TRUE(is_quarantined(held, other));
  EXPECT_FALSE(is_quarantined(held, key_of("b", 102)));
  EXPECT_TRUE(held.contains(one.first));
  EXPECT_EQ(held.next_unseen(4), (std::vector{other, one})) << "the newest first";
  EXPECT_EQ(held.next_held(100).size(), kQuarantineThreshold);
}

TEST(ContendedKeys, ThoseThatAreHeldForLongAreNoCrowd) {
  ContendedKeys held;
  const TenantKey one = key_of("a", 100);
  const Duration later = ContendedKeys::kWithin + 1ms;
  hold(held, "a", 1, kQuarantineThreshold);
  ASSERT_TRUE(is_quarantined(held, one));
  hold(held, "a", 1, kQuarantineThreshold, later);  // looked at once more
  held.tidy(later);
  EXPECT_FALSE(held.contains(one.first)) << "it is no longer kept from being made";
  EXPECT_FALSE(is_quarantined(held, one, later));
  EXPECT_EQ(held.next_held(100).size(), kQuarantineThreshold);
}

TEST(ContendedKeys, OneThatIsFreeMayBeMadeForAWhile) {
  ContendedKeys held;
  const TenantKey one = key_of("a", 100);
  hold(held, "a", 1, kQuarantineThreshold);
  ASSERT_TRUE(is_quarantined(held, one));
  held.note(one, false, 0ms);
  EXPECT_FALSE(held.contains(one.first));
  held.tidy(1s);
  EXPECT_FALSE(is_quarantined(held, one, 1s));
  held.tidy(1min);
  hold(held, "a", 201, 200 + kQuarantineThreshold, 1min);
  EXPECT_TRUE(is_quarantined(held, one, 1min)) << "it is long ago";
}

TEST(ContendedKeys, NothingIsLeftOfWhatIsFree) {
  ContendedKeys held;
  hold(held, "a", 1, 20);
  ASSERT_TRUE(is_quarantined(held, key_of("a", 21)));
  for (const auto& key : held.next_held(100)) held.note(key, false, 0ms);
  for (const auto& key : held.next_unseen(100)) held.note(key, false, 0ms);
  EXPECT_TRUE(held.empty());
  EXPECT_TRUE(held.next_held(1).empty());
  held.note(key_of("a", 1), false, 0ms);
  EXPECT_TRUE(held.empty()) << "nobody asked for it";
}

TEST(ContendedKeys, WhatWaitsForItsFirstLookIsBounded) {
  ContendedKeys held;
  hold(held, "a", 1, kQuarantineThreshold);
  for (std::uint64_t i = 100; i < 20'100; ++i) ASSERT_TRUE(is_quarantined(held, key_of("a", i)));
  EXPECT_EQ(held.next_unseen(100'000).size(), 10'000u);
  EXPECT_TRUE(held.contains(key_of("a", 20'099).first));
  EXPECT_FALSE(held.contains(key_of("a", 100).first));
}

}  // namespace
}  // namespace latchkey::pg
