#include <algorithm>

#include "simulation/world.hpp"

// The checks after faults have stopped: every call ends, every run ends, and the history has no violation.
namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

std::vector<Run> list_all(Store& store) {
  std::vector<Run> all;
  ListQuery query{.limit = 1000};
  do {
    auto page = store.list(query);
    if (!page) break;
    all.insert(all.end(), page->runs.begin(), page->runs.end());
    query.cursor = page->next;
  } while (!query.cursor.empty());
  return all;
}

}  // namespace

void World::check_contradictions() {
  const std::string found = disk->find_contradiction();
  history.check(found.empty(), found);
}

void World::drain() {
  const auto busy = [this] {
    return std::ranges::any_of(cast_, [](const auto& one) { return one->life->alive && one->busy; });
  };
  run_until(clock.elapsed() + 10s);
  for (int i = 0; i < 30 && busy(); ++i) run_until(clock.elapsed() + 10s);
  history.check(!busy(), "a caller's call does not end");
  history.check(engine != nullptr, "the server is down");
  if (!engine) return;
  history.scan(engine->store(), plan.retention);
  history.check_dead_letters(engine->store());
  check_contradictions();
  check_suppressed();
  for (int i = 0; i < 2; ++i) {
    // Past the time in which callers must claim again; workers continue.
    clock.jump(25h);
    last_forward_jump = clock.elapsed();
    run_until(clock.elapsed() + 10s);
    if (i == 0) settle_by_hand();
  }
  open_for_work = false;
  run_until(clock.elapsed() + 5s);
  history.scan(engine->store(), plan.retention);
  history.check_dead_letters(engine->store());
  check_contradictions();
  check_all_ended();
}

// Only an operator can end a doubt, or a wait for a run that will never complete.
void World::settle_by_hand() {
  const auto move_now = [this](RunId id, Move how) {
    MoveRequest request{.tenant = std::nullopt, .id = id, .move = std::move(how)};
    engine->move(request, [this, request](Result<MoveReply> reply) {
      if (!reply) return;
      after_commit(stage_of(*reply), [this, request, moved = *reply](bool) {
        history.saw(request, {}, moved, engine->store().now(), false);
      });
    });
    commit_soon();
  };
  for (const Run& run : list_all(engine->store()))
    if (run.as<InDoubt>()) move_now(run.id(), ResolveCompleted{"it had happened"});
  run_until(clock.elapsed() + 20s);
  for (const Run& listed : list_all(engine->store())) {
    // Cancelling one run may have ended another.
    const auto run = engine->store().find(std::nullopt, listed.id());
    if (!run || !*run || !(*run)->as<Queued>() || (*run)->waiting_for == 0) continue;
    history.check_waits(**run, engine->store());
    move_now(listed.id(), CancelByHand{});
  }
  run_until(clock.elapsed() + 10s);
}

void World::check_suppressed() {
  for (const Run& run : list_all(engine->store())) {
    if (!run.head->guarded()) continue;
    const RunHead& head = *run.head;
    const auto answer = engine->explain_key({head.tenant, head.function, head.key, head.key_hash});
    if (!answer || !*answer || (*answer)->run.id() != run.id()) continue;
    std::uint64_t counted = 0;
    for (const DuplicateCount& one : (*answer)->suppressed.counts) counted += one.count;
    const std::uint64_t expected = history.suppressed(run.id());
    history.check(counted == expected || (ever_crashed && counted < expected),
                  "suppressed duplicates: " + std::to_string(counted) + " counted, " + std::to_string(expected) +
                      " seen of " + head.tenant + "/" + head.function + "/" + head.key);
  }
}

void World::check_all_ended() {
  const bool has_workers = plan.workers > 0;
  for (const Run& run : list_all(engine->store())) {
    const bool lacks_workers = !has_workers && run.origin == Origin::enqueued && run.as<Queued>();
    // If no worker is alive, no job is taken.
    const bool workers_live =
        std::ranges::any_of(cast_, [](const auto& one) { return one->life->alive && one->name.starts_with("worker"); });
    history.check(run.is_settled() || run.as<InDoubt>() || lacks_workers || !workers_live,
                  "does not end: " + to_string(run.id()).substr(24) + " of " + run.head->tenant + "/" +
                      run.head->function + "/" + run.head->key + " is " + std::string(to_string(run.status())) +
                      ", attempt " + std::to_string(run.attempt) + " of " + std::to_string(run.attempts_max) +
                      ", waiting for " + std::to_string(run.waiting_for));
  }
}

}  // namespace latchkey::sim
