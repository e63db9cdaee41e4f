// Plays worlds. A failing seed is printed with the command that replays it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulation/world.hpp"
#include "support/test_length.hpp"

namespace latchkey::sim {
namespace {

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

TEST(Simulation, MemorySeeds) {
  play_seeds(StoreKind::memory, 1, repetitions(4000));
  play_seeds(StoreKind::queued, 1, repetitions(2000));
}

TEST(Simulation, SqliteSeeds) { play_seeds(StoreKind::sqlite, 1, repetitions(1200)); }

// Several connections, and in half of the worlds two hosts, on a real server.
// covers: C1
TEST(Simulation, PostgresSeeds) { play_seeds(StoreKind::postgres, 1, repetitions(40)); }

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
