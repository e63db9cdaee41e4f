// Plays worlds. A failing seed is printed with the command that replays it.
#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

#include "simulation/world.hpp"

namespace latchkey::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
constexpr std::uint64_t kMemorySeeds = 100, kQueuedSeeds = 50, kSqliteSeeds = 40, kPostgresSeeds = 4;
#else
constexpr std::uint64_t kMemorySeeds = 1500, kQueuedSeeds = 500, kSqliteSeeds = 500, kPostgresSeeds = 12;
#endif

std::string describe(const World& world) {
  std::string text;
  for (const std::string& line : world.lines) text += "  " + line + "\n";
  for (const std::string& violation : world.history.violations) text += "!! " + violation + "\n";
  return text;
}

void play_seeds(StoreKind kind, std::uint64_t from, std::uint64_t count) {
  int failed = 0;
  for (std::uint64_t seed = from; seed < from + count && failed < 3; ++seed) {
    World world(seed, kind);
    world.play();
    if (world.history.violations.empty()) continue;
    failed += 1;
    ADD_FAILURE() << "seed " << seed << ": replay it with `make sim SEED=" << seed << "`\n" << describe(world);
  }
}

// The processor time of this process alone, independent of the machine's load.
[[maybe_unused]] Duration processor_time() {
  timespec used{};
  EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds{used.tv_sec} +
                                              std::chrono::nanoseconds{used.tv_nsec});
}

// 2,000 seeds take under a minute of processor time in an optimised build.
TEST(Simulation, MemorySeeds) {
  [[maybe_unused]] const Duration from = processor_time();
  play_seeds(StoreKind::memory, 1, kMemorySeeds);
  play_seeds(StoreKind::queued, 1, kQueuedSeeds);
#ifdef LATCHKEY_SIM_TIMED
  static_assert(kMemorySeeds + kQueuedSeeds >= 2'000);
  EXPECT_LT(processor_time() - from, std::chrono::minutes{1});
#endif
}

TEST(Simulation, SqliteSeeds) { play_seeds(StoreKind::sqlite, 1, kSqliteSeeds); }

// Several connections, and in half of the worlds two hosts, on a real server.
// covers: C1
TEST(Simulation, PostgresSeeds) { play_seeds(StoreKind::postgres, 1, kPostgresSeeds); }

TEST(Simulation, SameSeedGivesTheSameWorld) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World one(seed, StoreKind::memory), other(seed, StoreKind::memory);
    one.play();
    other.play();
    EXPECT_EQ(one.digest, other.digest) << seed;
    EXPECT_EQ(one.events, other.events) << seed;
  }
}

// LATCHKEY_SIM_SEED=n: plays that seed on every store and prints every event.
TEST(Simulation, OneSeed) {
  const char* seed = std::getenv("LATCHKEY_SIM_SEED");
  if (!seed) GTEST_SKIP() << "LATCHKEY_SIM_SEED is not set";
  static constexpr const char* kNames[] = {"memory", "queued memory", "sqlite", "postgres"};
  for (const StoreKind kind : {StoreKind::memory, StoreKind::queued, StoreKind::sqlite, StoreKind::postgres}) {
    World world(std::strtoull(seed, nullptr, 10), kind);
    world.tracing = true;
    world.play();
    std::printf("seed %s on %s: %llu events\n%s", seed, kNames[static_cast<int>(kind)],
                static_cast<unsigned long long>(world.events), describe(world).c_str());
    EXPECT_TRUE(world.history.violations.empty());
  }
}

}  // namespace
}  // namespace latchkey::sim
