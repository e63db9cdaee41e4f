// World: one simulation of Latchkey, determined by its seed. One thread, one io_context that is polled by hand, virtual
// time. Callers, workers and operators reach the production Engine over links that lose, delay and repeat messages.
#pragma once

#include <boost/asio/io_context.hpp>

#include "engine/engine.hpp"
#include "simulation/history.hpp"
#include "simulation/life_stage.hpp"
#include "simulation/sim_store.hpp"
#include "simulation/virtual_clock.hpp"

namespace latchkey::sim {

// The parameters of a world, drawn from its seed.
struct Plan {
  explicit Plan(Random& dice);

  std::uint32_t lose_percent, repeat_percent, slow_percent;  // of messages
  std::uint32_t callers, workers, operators;
  bool pauses, crashes, server_crashes, clock_jumps;
  Duration lease, window, effect_max;
  std::uint32_t retries;
  std::uint32_t keys;
  Retention retention;
  bool fingerprints;
};

class World;
class SimLink;

// One caller, worker or operator; a successor replaces it after a crash.
struct Process {
  Process(World& world, std::string name);
  World& world;
  std::string name;
  std::shared_ptr<Life> life;
  SeededRandom random;
  LifeClock clock;
  bool busy = false;  // a caller with calls to make
  // A link outlives the process: messages may still be on their way.
  std::shared_ptr<SimLink> link;
  // The claims of this process's current call, and whether each has won.
  std::map<ClaimId, bool> claims;
};

class World {
 public:
  World(std::uint64_t seed, StoreKind kind);
  ~World();

  // Plays the whole world; afterwards history.violations lists the broken invariants.
  void play();

  bool chance(std::uint32_t percent) { return faults && dice.below(100) < percent; }
  Duration span(Duration from, Duration to) {
    return from + Duration{static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>((to - from).count()) + 1))};
  }
  Duration travel();
  void trace(const std::string& line);
  // Schedules a commit of the waiting commands, if the store commits in steps.
  void commit_soon();
  void after_commit(LifeStage stage, std::function<void(bool alone)> check);
  // `unanswered` is called if the server crashes before it replies to a command that its store may have committed.
  std::uint64_t expect_answer(std::function<void()> unanswered);
  void answered(std::uint64_t expected) { unanswered_.erase(expected); }
  void spawn(Task<void> task);

  std::uint64_t seed;
  SeededRandom dice;
  Plan plan;
  VirtualClock clock;
  asio::io_context io;
  SeededRandom store_random;
  std::unique_ptr<SimStore> disk;
  std::unique_ptr<Engine> engine;  // none: the server is down
  std::uint64_t server_life = 0;
  History history;
  bool faults = true;
  bool open_for_work = true;  // workers run until this is false
  Duration last_forward_jump{-1};
  bool ever_crashed = false;
  std::uint64_t digest = 0;  // of all events: the same seed gives the same digest
  std::uint64_t events = 0;
  bool tracing = false;
  std::vector<std::string> lines;

 private:
  void run_until(Duration until);
  void poll();
  void commit();
  Process& add(const std::string& name, std::uint32_t calls);
  void kill_one();
  void pause_one();
  void start_server();
  void crash_server();
  void schedule_faults();
  void drain();
  void settle_by_hand();
  void check_suppressed();
  void check_contradictions();
  void check_all_ended();

  std::shared_ptr<Life> server_;
  Duration commit_pause_{};
  bool commit_planned_ = false;
  bool committing_ = false;
  std::uint64_t commits_ = 0;
  std::multimap<LifeStage, std::function<void(bool)>> checks_;
  std::uint64_t expected_ = 0;
  std::map<std::uint64_t, std::function<void()>> unanswered_;
  std::vector<std::unique_ptr<LifeClock>> server_clocks_;
  std::vector<std::unique_ptr<Process>> cast_;
};

}  // namespace latchkey::sim
