#include "store/postgres/held_keys.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

TenantKey key_of(const std::string& tenant, std::uint64_t number) { return {make_uuid_v7({}, number, 7), tenant}; }

void hold(HeldKeys& held, const std::string& tenant, std::uint64_t from, std::uint64_t to) {
  for (; from <= to; ++from) held.note(key_of(tenant, from), true);
}

std::vector<TenantKey> look(HeldKeys& held, std::size_t limit) {
  const auto keys = held.next(limit);
  for (const auto& key : keys) held.note(key, true);
  return keys;
}

TEST(HeldKeys, TenantsTakeTurns) {
  HeldKeys held;
  hold(held, "a", 1, 100);
  hold(held, "b", 101, 101);
  hold(held, "c", 102, 103);
  EXPECT_EQ(look(held, 5),
            (std::vector{key_of("a", 1), key_of("b", 101), key_of("c", 102), key_of("a", 2), key_of("c", 103)}));
  EXPECT_EQ(look(held, 3), (std::vector{key_of("a", 3), key_of("b", 101), key_of("c", 102)}));
}

TEST(HeldKeys, MoreTenantsThanThereIsTimeForHaveTheirTurnLater) {
  HeldKeys held;
  for (const std::uint64_t i : {1, 2, 3}) hold(held, "t" + std::to_string(i), i, i);
  EXPECT_EQ(look(held, 2), (std::vector{key_of("t1", 1), key_of("t2", 2)}));
  EXPECT_EQ(look(held, 2), (std::vector{key_of("t3", 3), key_of("t1", 1)}));
}

TEST(HeldKeys, EachOfATenantsHasItsTurn) {
  HeldKeys held;
  hold(held, "a", 1, 5);
  EXPECT_EQ(look(held, 3), (std::vector{key_of("a", 1), key_of("a", 2), key_of("a", 3)}));
  EXPECT_EQ(look(held, 3), (std::vector{key_of("a", 4), key_of("a", 5), key_of("a", 1)}));
}

TEST(HeldKeys, NewKeysOfWhoHoldsACrowdAreSeenFirst) {
  HeldKeys held;
  const TenantKey one = key_of("a", 100), other = key_of("a", 101), elsewhere = key_of("b", 102);
  hold(held, "a", 1, HeldKeys::kCrowd);
  EXPECT_FALSE(held.must_be_seen(one.first, one.second));
  hold(held, "a", HeldKeys::kCrowd + 1, HeldKeys::kCrowd + 1);
  EXPECT_TRUE(held.must_be_seen(one.first, one.second));
  EXPECT_TRUE(held.must_be_seen(other.first, other.second));
  EXPECT_FALSE(held.must_be_seen(elsewhere.first, elsewhere.second));
  EXPECT_TRUE(held.contains(one.first));
  EXPECT_EQ(held.next(4), (std::vector{other, key_of("a", 1), one, key_of("a", 2)})) << "the newest first";
}

TEST(HeldKeys, OneThatIsFreeMayBeMade) {
  HeldKeys held;
  const TenantKey one = key_of("a", 100);
  hold(held, "a", 1, HeldKeys::kCrowd + 1);
  ASSERT_TRUE(held.must_be_seen(one.first, one.second));
  held.note(one, false);
  EXPECT_FALSE(held.contains(one.first));
  EXPECT_FALSE(held.must_be_seen(one.first, one.second));
  held.forget_free();
  EXPECT_TRUE(held.must_be_seen(one.first, one.second)) << "it is long ago";
}

TEST(HeldKeys, NothingIsLeftOfWhatIsFree) {
  HeldKeys held;
  hold(held, "a", 1, 20);
  held.must_be_seen(key_of("a", 21).first, "a");
  for (const auto& key : held.next(100)) held.note(key, false);
  EXPECT_TRUE(held.empty());
  EXPECT_TRUE(held.next(1).empty());
  held.note(key_of("a", 1), false);
  EXPECT_TRUE(held.empty()) << "nobody asked for it";
}

}  // namespace
}  // namespace latchkey::pg
