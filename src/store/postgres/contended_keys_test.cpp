#include "store/postgres/contended_keys.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

using namespace std::chrono_literals;

// The number of contended keys at which a tenant is quarantined.
constexpr auto kQuarantine = ContendedKeys::kQuarantineThreshold + 1;

TenantKey key_of(const std::string& tenant, std::uint64_t number) { return {make_uuid_v7({}, number, 7), tenant}; }

void add_contended(ContendedKeys& keys, const std::string& tenant, std::uint64_t from, std::uint64_t to,
                   Duration now = 0ms) {
  for (; from <= to; ++from) keys.add_contended(key_of(tenant, from), now);
}

bool must_be_probed(ContendedKeys& keys, const TenantKey& key, Duration now = 0ms) {
  return keys.must_be_probed(key.first, key.second, now);
}

// Probes the next keys and finds them contended.
std::vector<TenantKey> probe(ContendedKeys& contended, std::size_t limit) {
  const auto keys = contended.next_contended(limit);
  for (const auto& key : keys) contended.add_contended(key, 0ms);
  return keys;
}

TEST(ContendedKeys, ProbesTenantsRoundRobin) {
  ContendedKeys contended;
  add_contended(contended, "a", 1, 100);
  add_contended(contended, "b", 101, 101);
  add_contended(contended, "c", 102, 103);
  EXPECT_EQ(probe(contended, 5),
            (std::vector{key_of("a", 1), key_of("b", 101), key_of("c", 102), key_of("a", 2), key_of("c", 103)}));
  EXPECT_EQ(probe(contended, 3), (std::vector{key_of("a", 3), key_of("b", 101), key_of("c", 102)}));
}

TEST(ContendedKeys, ProbesTenantsBeyondTheLimitNext) {
  ContendedKeys contended;
  for (const std::uint64_t i : {1, 2, 3}) add_contended(contended, "t" + std::to_string(i), i, i);
  EXPECT_EQ(probe(contended, 2), (std::vector{key_of("t1", 1), key_of("t2", 2)}));
  EXPECT_EQ(probe(contended, 2), (std::vector{key_of("t3", 3), key_of("t1", 1)}));
}

TEST(ContendedKeys, ProbesEveryKeyOfATenantInTurn) {
  ContendedKeys contended;
  add_contended(contended, "a", 1, 5);
  EXPECT_EQ(probe(contended, 3), (std::vector{key_of("a", 1), key_of("a", 2), key_of("a", 3)}));
  EXPECT_EQ(probe(contended, 3), (std::vector{key_of("a", 4), key_of("a", 5), key_of("a", 1)}));
}

TEST(ContendedKeys, QuarantineProbesNewKeysFirst) {
  ContendedKeys contended;
  const TenantKey one = key_of("a", 100), other = key_of("a", 101);
  add_contended(contended, "a", 1, kQuarantine - 1);
  EXPECT_FALSE(must_be_probed(contended, one)) << "one contended key too few";
  add_contended(contended, "a", kQuarantine, kQuarantine);
  EXPECT_TRUE(must_be_probed(contended, one));
  EXPECT_TRUE(must_be_probed(contended, other));
  EXPECT_FALSE(must_be_probed(contended, key_of("b", 102))) << "another tenant's";
  EXPECT_TRUE(contended.contains(one.first));
  EXPECT_EQ(contended.next_unprobed(4), (std::vector{other, one})) << "the newest first";
  EXPECT_EQ(contended.next_contended(100).size(), kQuarantine);
}

TEST(ContendedKeys, QuarantineEndsWithoutNewContention) {
  ContendedKeys contended;
  const TenantKey one = key_of("a", 100);
  const Duration later = ContendedKeys::kQuarantineWindow + 1ms;
  add_contended(contended, "a", 1, kQuarantine);
  ASSERT_TRUE(must_be_probed(contended, one));
  add_contended(contended, "a", 1, kQuarantine, later);  // another probe of the same keys
  contended.prune(later);
  EXPECT_FALSE(contended.contains(one.first)) << "it may be inserted unprobed";
  EXPECT_FALSE(must_be_probed(contended, one, later));
  EXPECT_EQ(contended.next_contended(100).size(), kQuarantine);
}

TEST(ContendedKeys, FreeKeyNeedsNoProbeForAWhile) {
  ContendedKeys contended;
  const TenantKey one = key_of("a", 100);
  add_contended(contended, "a", 1, kQuarantine);
  ASSERT_TRUE(must_be_probed(contended, one));
  contended.mark_free(one, 0ms);
  EXPECT_FALSE(contended.contains(one.first));
  contended.prune(1s);
  EXPECT_FALSE(must_be_probed(contended, one, 1s));
  contended.prune(1min);
  add_contended(contended, "a", 201, 200 + kQuarantine, 1min);
  EXPECT_TRUE(must_be_probed(contended, one, 1min)) << "the last probe is too old";
}

TEST(ContendedKeys, IsEmptyWhenAllKeysAreFree) {
  ContendedKeys contended;
  add_contended(contended, "a", 1, 20);
  ASSERT_TRUE(must_be_probed(contended, key_of("a", 21)));
  for (const auto& key : contended.next_contended(100)) contended.mark_free(key, 0ms);
  for (const auto& key : contended.next_unprobed(100)) contended.mark_free(key, 0ms);
  EXPECT_TRUE(contended.empty());
  EXPECT_TRUE(contended.next_contended(1).empty());
  contended.mark_free(key_of("a", 1), 0ms);
  EXPECT_TRUE(contended.empty()) << "an unknown key is ignored";
}

TEST(ContendedKeys, UnprobedKeysAreBounded) {
  ContendedKeys contended;
  add_contended(contended, "a", 1, kQuarantine);
  for (std::uint64_t i = 100; i < 20'100; ++i) ASSERT_TRUE(must_be_probed(contended, key_of("a", i)));
  EXPECT_EQ(contended.next_unprobed(100'000).size(), 10'000u);
  EXPECT_TRUE(contended.contains(key_of("a", 20'099).first));
  EXPECT_FALSE(contended.contains(key_of("a", 100).first));
}

}  // namespace
}  // namespace latchkey::pg
