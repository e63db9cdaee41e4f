#include "simulation/world.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "simulation/cast.hpp"
#include "simulation/link.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPlayTime = 30s;

template <class T, std::size_t N>
T pick(Random& dice, const T (&from)[N]) {
  return from[dice.below(N)];
}

}  // namespace

Plan::Plan(Random& dice)
    : lose_percent(pick<std::uint32_t>(dice, {0, 2, 5, 20})),
      repeat_percent(pick<std::uint32_t>(dice, {0, 5, 20})),
      slow_percent(pick<std::uint32_t>(dice, {0, 5, 20})),
      callers(2 + static_cast<std::uint32_t>(dice.below(5))),
      workers(static_cast<std::uint32_t>(dice.below(3))),
      operators(static_cast<std::uint32_t>(dice.below(2))),
      pauses(dice.one_in(2)),
      crashes(dice.one_in(2)),
      server_crashes(dice.one_in(3)),
      clock_jumps(dice.one_in(3)),
      lease(pick<Duration>(dice, {1s, 1500ms, 3s})),
      window(pick<Duration>(dice, {500ms, 2s, 10s, 2h})),
      effect_max(pick<Duration>(dice, {100ms, 1s, 4s})),
      retries(static_cast<std::uint32_t>(dice.below(4))),
      keys(1 + static_cast<std::uint32_t>(dice.below(3))),
      retention{.done = pick<Duration>(dice, {500ms, 5s, 1h}), .failed = pick<Duration>(dice, {1s, 10s, 2h})},
      fingerprints(dice.one_in(2)) {}

Process::Process(World& in, std::string called)
    : world(in),
      name(std::move(called)),
      life(std::make_shared<Life>()),
      random(in.dice.next()),
      clock(in.clock, life),
      link(std::make_shared<SimLink>(*this)) {}

World::World(std::uint64_t number, StoreKind kind)
    : seed(number),
      dice(number * 0x9e3779b97f4a7c15ULL + 1),
      plan(dice),
      clock(from_ms(1'770'372'000'000)),
      store_random(dice.next()),
      disk(make_store(kind, clock, store_random)),
      history(clock) {
  // A long pause, so that several commands run at the same time.
  commit_pause_ = !disk->is_orderly() && dice.one_in(2) ? 150ms : 3ms;
}

World::~World() {
  clock.clear();
  engine.reset();
  disk.reset();
  io.restart();
  io.poll();
}

Duration World::travel() { return chance(plan.slow_percent) ? span(0ms, 3s) : span(0ms, 20ms); }

void World::trace(const std::string& line) {
  if (tracing) lines.push_back(std::to_string(clock.elapsed().count()) + " ms: " + line);
}

void World::spawn(Task<void> task) {
  asio::co_spawn(io, std::move(task), [](std::exception_ptr broken) {
    if (broken) std::rethrow_exception(broken);
  });
}

void World::poll() {
  io.restart();
  io.poll();
}

void World::commit_soon() {
  if (!disk->stepped() || commit_planned_) return;
  commit_planned_ = true;
  clock.after(span(0ms, commit_pause_), nullptr, [this] { commit(); });
}

void World::commit() {
  commit_planned_ = false;
  commits_ += 1;
  committing_ = true;
  const std::size_t commands = disk->step();
  committing_ = false;
  for (auto& [stage, check] : std::exchange(checks_, {})) check(commands == 1);
  poll();
  if (commands > 0) commit_soon();
}

// Checks that need to know whether a command was alone in its transaction.
void World::after_commit(LifeStage stage, std::function<void(bool)> check) {
  if (committing_) {
    // Replies of several writers and hosts do not come in commit order; their life stages restore it.
    checks_.emplace(disk->is_orderly() ? LifeStage{} : stage, std::move(check));
  } else {
    check(!disk->stepped());
  }
}

std::uint64_t World::expect_answer(std::function<void()> unanswered) {
  if (!disk->is_orderly()) unanswered_.emplace(++expected_, std::move(unanswered));
  return expected_;
}

void World::run_until(Duration until) {
  for (std::uint64_t commits = commits_; clock.step(until); commits = commits_) {
    poll();
    // The fired timer may have queued a command, unless it was a commit without commands.
    if (commits == commits_ && engine) commit_soon();
    if (++events % 64 == 0 && engine) history.scan(engine->store(), plan.retention);
  }
}

Process& World::add(const std::string& name, std::uint32_t calls) {
  Process& one = *cast_.emplace_back(std::make_unique<Process>(*this, name));
  spawn(name[0] == 'c' ? live_as_caller(one, calls) : name[0] == 'w' ? live_as_worker(one) : live_as_operator(one));
  return one;
}

void World::start_server() {
  EngineSettings settings;
  settings.retention = plan.retention;
  settings.purge_first = 1s;
  settings.purge_every = 1s;
  settings.cache_bytes = dice.one_in(2) ? 64 << 20 : 64 << 10;
  server_ = std::make_shared<Life>();
  // The engine has a reference to its clock, which must outlive the coroutine and the server.
  server_clocks_.push_back(std::make_unique<LifeClock>(clock, server_));
  engine = std::make_unique<Engine>(disk->store(), *server_clocks_.back(), settings);
  spawn(engine->run_maintenance());
  trace("the server starts");
}

// Pending requests get no reply, and uncommitted commands are lost.
void World::crash_server() {
  trace("the server crashes");
  ever_crashed = true;
  server_life += 1;
  server_->alive = false;
  clock.forget(server_);
  engine.reset();
  disk->crash();
  for (auto& [id, unanswered] : std::exchange(unanswered_, {})) unanswered();
  clock.after(span(100ms, 3s), nullptr, [this] { start_server(); });
}

void World::kill_one() {
  Process& victim = *cast_[dice.below(cast_.size())];
  if (!victim.life->alive) return;
  trace(victim.name + " crashes");
  victim.life->alive = false;
  clock.forget(victim.life);
  const std::string successor = victim.name + "'";
  const bool busy = victim.busy;
  clock.after(span(100ms, 3s), nullptr, [this, successor, busy] {
    if (successor[0] != 'c' || busy) add(successor, 2);
  });
}

void World::pause_one() {
  Process& victim = *cast_[dice.below(cast_.size())];
  if (!victim.life->alive) return;
  trace(victim.name + " is paused");
  victim.life->paused_until = clock.elapsed() + span(plan.lease / 2, plan.lease * 5 / 2);
  victim.life->last_pause_end = victim.life->paused_until;
}

void World::schedule_faults() {
  const auto schedule = [this](bool wanted, std::uint64_t most, auto fault) {
    if (!wanted) return;
    for (std::uint64_t n = 1 + dice.below(most); n > 0; --n)
      clock.at(span(0ms, kPlayTime), nullptr, [this, fault] {
        if (faults) fault();
      });
  };
  schedule(plan.pauses, 8, [this] { pause_one(); });
  schedule(plan.crashes, 6, [this] { kill_one(); });
  schedule(plan.server_crashes, 3, [this] {
    if (engine) crash_server();
  });
  schedule(plan.clock_jumps, 4, [this] {
    const Duration leap = dice.one_in(2) ? Duration{1h} : Duration{-1h};
    trace("the wall clock jumps by " + std::to_string(leap.count()) + " ms");
    clock.jump(leap);
    if (leap > 0ms) last_forward_jump = clock.elapsed();
  });
}

void World::play() {
  start_server();
  for (std::uint32_t i = 0; i < plan.callers; ++i)
    add("caller" + std::to_string(i), 3 + static_cast<std::uint32_t>(dice.below(8)));
  for (std::uint32_t i = 0; i < plan.workers; ++i) add("worker" + std::to_string(i), 0);
  for (std::uint32_t i = 0; i < plan.operators; ++i) add("operator" + std::to_string(i), 0);
  schedule_faults();
  poll();
  run_until(kPlayTime);
  faults = false;
  disk->stop_faults();
  trace("faults stop");
  drain();
}

}  // namespace latchkey::sim
