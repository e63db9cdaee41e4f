#include "store/duplicates.hpp"

#include <gtest/gtest.h>

#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

TEST(Duplicates, CountsAreMergedByReason) {
  Duplicates merged{.counts = {{"REPLAYED", 2, kNoon, kNoon + 1s}}, .latest = {{kNoon, "REPLAYED", "a"}}};
  merge_duplicates(merged, {.counts = {{"REPLAYED", 3, kNoon - 1s, kNoon + 5s}, {"KEY_REUSED", 1, kNoon, kNoon}},
                            .latest = {{kNoon + 1s, "KEY_REUSED", "b"}}});
  ASSERT_EQ(merged.counts.size(), 2u);
  EXPECT_EQ(merged.counts[0].count, 5u);
  EXPECT_EQ(merged.counts[0].first, kNoon - 1s);
  EXPECT_EQ(merged.counts[0].last, kNoon + 5s);
  EXPECT_EQ(merged.counts[1].reason, "KEY_REUSED");
  ASSERT_EQ(merged.latest.size(), 2u);
  EXPECT_EQ(merged.latest.back().caller, "b");
}

TEST(Duplicates, OnlyTheLatestCallersAreStored) {
  Duplicates merged;
  for (int i = 0; i < 40; ++i) merge_duplicates(merged, {.latest = {{kNoon + i * 1s, "REPLAYED", std::to_string(i)}}});
  ASSERT_EQ(merged.latest.size(), kLatestDuplicates);
  EXPECT_EQ(merged.latest.front().caller, "24");
  EXPECT_EQ(merged.latest.back().caller, "39");
}

}  // namespace
}  // namespace latchkey
