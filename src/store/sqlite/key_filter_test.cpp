#include "store/sqlite/key_filter.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "store/sqlite/testing.hpp"

namespace latchkey {
namespace {

class KeyFilterTest : public testing::Test {
 protected:
  std::vector<KeyWindow::Entry> make_entries(int count) {
    std::vector<KeyWindow::Entry> entries(static_cast<std::size_t>(count));
    for (auto& [hash, seq] : entries) {
      for (auto& byte : hash.bytes) byte = static_cast<unsigned char>(random.next());
      seq = ++last_seq;
    }
    std::ranges::sort(entries);
    return entries;
  }
  void merge(const std::vector<KeyWindow::Entry>& entries) {
    keys.merge(entries);
    filter.add(entries);
    merged.insert(merged.end(), entries.begin(), entries.end());
  }
  void scan(std::size_t pages) {
    filter.scan(keys, pages);
    filter.commit_scan();
  }
  void scan_all() {
    while (filter.is_scanning()) scan(8);
  }
  double wrong_share() {
    int wrong = 0;
    for (const auto& [hash, seq] : make_entries(20'000)) wrong += filter.may_have(hash);
    return wrong / 20'000.0;
  }
  void expect_all() {
    for (const auto& [hash, seq] : merged) ASSERT_TRUE(filter.may_have(hash));
  }

  EmptyDatabase database;
  KeyPages keys{database};
  KeyFilter filter;
  std::vector<KeyWindow::Entry> merged;
  SeededRandom random{20261116};
  Seq last_seq = 0;
};

TEST_F(KeyFilterTest, ExcludesNoKeyUntilTheScanHasEnded) {
  merge(make_entries(10'000));
  filter.reset(10'000);
  scan(8);
  EXPECT_TRUE(filter.is_scanning());
  EXPECT_EQ(wrong_share(), 1.0);
  scan_all();
  expect_all();
  EXPECT_LT(wrong_share(), 0.02);
}

TEST_F(KeyFilterTest, HasKeysThatAreMergedDuringTheScan) {
  merge(make_entries(20'000));
  filter.reset(20'000);
  for (int i = 0; i < 40; ++i) {
    scan(2);
    merge(make_entries(500));
  }
  scan_all();
  merge(make_entries(500));
  expect_all();
  EXPECT_LT(wrong_share(), 0.02);
}

TEST_F(KeyFilterTest, PagesOfARolledBackScanAreReadAgain) {
  merge(make_entries(300));
  filter.reset(300);
  const auto erased = merged.front();
  // The scan ends in a transaction that is rolled back: a purge has erased a key, and a merge has split its page.
  database.execute("BEGIN");
  keys.erase(erased.first, erased.second);
  keys.merge(make_entries(300));
  for (int i = 0; i < 3; ++i) filter.scan(keys, 1);
  filter.forget_scan();
  database.execute("ROLLBACK");
  scan_all();
  expect_all();
}

TEST_F(KeyFilterTest, GrowsWithTheKeys) {
  filter.reset(0);
  scan_all();
  for (int i = 0; i < 30; ++i) {
    merge(make_entries(20'000));
    scan(32);
  }
  EXPECT_TRUE(filter.is_scanning()) << "600,000 keys are more than it began with";
  expect_all();
  scan_all();
  expect_all();
  EXPECT_LT(wrong_share(), 0.02);
}

}  // namespace
}  // namespace latchkey
