#include "store/sqlite/key_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.hpp"
#include "store/sqlite/testing.hpp"

namespace latchkey {
namespace {

class KeyPagesTest : public testing::Test {
 protected:
  // Few first bytes, so that neighbours share pages and `first`.
  ShortHash random_hash() {
    ShortHash hash;
    for (auto& byte : hash.bytes) byte = static_cast<unsigned char>(random.next());
    if (random.next() % 4 == 0) std::fill_n(hash.bytes.begin(), 8, static_cast<unsigned char>(random.next() % 3 * 127));
    return hash;
  }
  void merge(std::map<ShortHash, Seq> entries) {
    pages.merge(std::vector<KeyWindow::Entry>(entries.begin(), entries.end()));
    for (const auto& [hash, seq] : entries) expected[hash] = seq;
  }
  void expect_all() {
    for (const auto& [hash, seq] : expected) ASSERT_EQ(pages.find(hash), seq);
  }
  std::int64_t count(const std::string& sql) {
    Statement statement = database.prepare(sql);
    EXPECT_TRUE(statement.step());
    return statement.integer(0);
  }

  EmptyDatabase database;
  KeyPages pages{database};
  std::map<ShortHash, Seq> expected;
  SeededRandom random{20261116};
};

TEST_F(KeyPagesTest, FindsWhatWasMergedAndNothingElse) {
  EXPECT_EQ(pages.find(random_hash()), std::nullopt);
  Seq seq = 0;
  for (int round = 0; round < 40; ++round) {
    std::map<ShortHash, Seq> slice;
    for (int i = 0; i < 500; ++i) slice[random_hash()] = ++seq;
    // Some keys have a second run.
    for (int i = 0; i < 50 && !expected.empty(); ++i) {
      const auto at = expected.lower_bound(random_hash());
      if (at != expected.end()) slice[at->first] = ++seq;
    }
    merge(slice);
  }
  expect_all();
  for (int i = 0; i < 2000; ++i) {
    const ShortHash hash = random_hash();
    EXPECT_EQ(pages.find(hash).has_value(), expected.contains(hash));
  }
}

TEST_F(KeyPagesTest, RowsFitIntoOnePageAndAreWellFilled) {
  Seq seq = 0;
  for (int round = 0; round < 20; ++round) {
    std::map<ShortHash, Seq> slice;
    for (int i = 0; i < 2000; ++i) {
      ShortHash hash;
      for (auto& byte : hash.bytes) byte = static_cast<unsigned char>(random.next());
      slice[hash] = ++seq;
    }
    merge(slice);
  }
  EXPECT_LE(count("SELECT max(length(entries)) FROM lk_keys"), 4061) << "longer ones spill into overflow pages";
  EXPECT_GE(count("SELECT avg(length(entries)) FROM lk_keys"), 2000);
}

TEST_F(KeyPagesTest, ErasesOnlyTheRunThatIsNamed) {
  std::map<ShortHash, Seq> slice;
  for (Seq seq = 1; seq <= 1000; ++seq) slice[random_hash()] = seq;
  merge(slice);
  for (const auto& [hash, seq] : slice) {
    pages.erase(hash, seq + 1);
    ASSERT_EQ(pages.find(hash), seq);
    pages.erase(hash, seq);
    ASSERT_EQ(pages.find(hash), std::nullopt);
  }
  EXPECT_EQ(count("SELECT count(*) FROM lk_keys"), 0);
  merge(slice);
  expect_all();
}

TEST_F(KeyPagesTest, TakesTheFirstAndTheLastHash) {
  ShortHash last;
  last.bytes.fill(255);
  merge({{ShortHash(), 1}, {last, 2}});
  merge({{last, 3}});
  expect_all();
}

TEST_F(KeyPagesTest, TheLargestSeqIsStored) {
  const Seq largest = (Seq{1} << 44) - 1;
  const ShortHash hash = random_hash();
  merge({{hash, largest}});
  EXPECT_EQ(pages.find(hash), largest);
}

}  // namespace
}  // namespace latchkey
