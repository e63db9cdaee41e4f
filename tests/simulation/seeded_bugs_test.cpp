// Tests the simulation: each seeded bug must break an invariant in some world.
#include <gtest/gtest.h>

#include "base/seeded_bug.hpp"
#include "simulation/world.hpp"
#include "support/test_length.hpp"

namespace latchkey::sim {
namespace {

struct Bug {
  SeededBug which;
  const char* name;
  StoreKind store = StoreKind::memory;
};
constexpr Bug kBugs[] = {
#define LK_BUG(name) {SeededBug::name, #name},
    LK_SEEDED_BUGS(LK_BUG)
#undef LK_BUG
// The bugs of the SQLite store that need no failing disk.
#define LK_BUG(name) {SeededBug::name, #name, StoreKind::sqlite},
        LK_BUG(merge_drops_an_entry) LK_BUG(split_drops_a_page) LK_BUG(filter_ignores_merges)
            LK_BUG(filter_scan_skips_a_page)
#undef LK_BUG
#define LK_BUG(name) {SeededBug::name, #name, StoreKind::postgres},
                LK_SEEDED_POSTGRES_BUGS(LK_BUG)
#undef LK_BUG
};
// A world on PostgreSQL takes a second or two.
constexpr std::uint64_t seeds_max(StoreKind store) { return store == StoreKind::postgres ? 100 : 600; }

// The first violation, or an empty text.
std::string play(std::uint64_t seed, StoreKind store) {
  World world(seed, store);
  try {
    world.play();
  } catch (const std::exception& broken) {
    return broken.what();
  }
  return world.history.violations.empty() ? "" : world.history.violations.front();
}

class SeededBugs : public testing::TestWithParam<Bug> {
 protected:
  ~SeededBugs() override { seeded_bug = SeededBug::none; }
};

TEST_P(SeededBugs, IsCaught) {
  seeded_bug = GetParam().which;
  for (std::uint64_t seed = 1; seed <= seeds_max(GetParam().store); ++seed) {
    const std::string wrong = play(seed, GetParam().store);
    if (wrong.empty()) continue;
    std::printf("%s: caught by seed %llu: %s\n", GetParam().name, static_cast<unsigned long long>(seed), wrong.c_str());
    return;
  }
  ADD_FAILURE() << GetParam().name << " was not caught by " << seeds_max(GetParam().store) << " seeds";
}

// A bug of the PostgreSQL store may need a hundred worlds of a second each, so those run in the long form only.
std::vector<Bug> bugs_of_this_run() {
  std::vector<Bug> bugs(std::begin(kBugs), std::end(kBugs));
  if (!is_long_test_run()) std::erase_if(bugs, [](const Bug& bug) { return bug.store == StoreKind::postgres; });
  return bugs;
}
INSTANTIATE_TEST_SUITE_P(Each, SeededBugs, testing::ValuesIn(bugs_of_this_run()),
                         [](const auto& at) { return std::string(at.param.name); });

TEST(NoSeededBug, IsEnabledByDefault) {
  const std::uint64_t seeds = repetitions(200);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) EXPECT_EQ(play(seed, StoreKind::memory), "") << seed;
  for (std::uint64_t seed = 1; seed <= seeds / 10; ++seed) EXPECT_EQ(play(seed, StoreKind::sqlite), "") << seed;
  for (std::uint64_t seed = 1; seed <= std::max<std::uint64_t>(seeds / 20, 2); ++seed) EXPECT_EQ(play(seed, StoreKind::postgres), "") << seed;
}

}  // namespace
}  // namespace latchkey::sim
