#include <algorithm>

#include "simulation/history.hpp"

namespace latchkey::sim {
namespace {

std::string full_name(const Run& run) {
  return to_string(run.id()).substr(24) + " (" + run.head->tenant + "/" + run.head->function + "/" + run.head->key +
         ", " + std::string(to_string(run.status())) + ")";
}

// Written independently of may_purge(), so that a mistake there is found.
bool may_be_gone(const Run& run, const Retention& retention, Instant now) {
  if (run.is_open()) return false;
  if (run.as<Failed>()) return now - run.settled_at() >= retention.failed;
  const Duration window = run.as<Completed>() && run.head->guard == Guard::once ? run.head->window : Duration{0};
  return now - run.settled_at() >= std::max(window, retention.done);
}

}  // namespace

// An acknowledged run is never lost: it is found in its last observed state or a later one, or it may be purged.
void History::scan(Store& store, const Retention& retention) {
  std::set<RunId> found;
  ListQuery query{.limit = 1000};
  do {
    const auto page = store.list(query);
    check(page.has_value(), "the store cannot be listed");
    if (!page) return;
    for (const Run& run : page->runs) {
      found.insert(run.id());
      observe(run);
    }
    query.cursor = page->next;
  } while (!query.cursor.empty());
  const Instant now = store.now();
  for (auto& [id, seen] : runs_) {
    if (found.contains(id) || seen.purged) continue;
    // The last observed state may be old: a failed run may have been reopened and settled since.
    check(may_be_gone(seen.last, retention, now) || !seen.last.is_settled(),
          "purged too early: " + full_name(seen.last));
    seen.purged = true;
  }
}

// Every failed generation is in exactly one dead letter, and no run with an unacknowledged dead letter is purged.
void History::check_dead_letters(Store& store) {
  const auto page = store.list_dead_letters({.with_acknowledged = true, .limit = 10'000});
  check(page.has_value(), "dead letters cannot be listed");
  std::map<std::pair<RunId, std::uint32_t>, int> members;
  for (const DeadLetter& entry : page->entries) {
    const auto listed = store.list_members(entry.id, 10'000);
    check(listed && (entry.acknowledged_at ? listed->size() <= entry.count : listed->size() == entry.count),
          "a dead letter's count is not that of its members");
    for (const DeadLetterMember& member : *listed) {
      members[{member.run, member.generation}] += 1;
      const auto run = store.find(std::nullopt, member.run);
      check(entry.acknowledged_at || (run && *run),
            "purged with an unacknowledged dead letter: " + to_string(member.run));
      check(!run || !*run || (*run)->head->tenant == entry.tenant, "a dead letter of another tenant's run");
    }
  }
  for (const auto& [which, count] : members) check(count == 1, "two dead letters for " + to_string(which.first));
  for (const auto& [id, seen] : runs_) {
    const auto run = store.find(std::nullopt, id);
    if (!run || !*run) continue;
    const std::uint32_t failed = (*run)->generation - ((*run)->as<Failed>() ? 0 : 1);
    // A follow-up may have been cancelled before an operator reopened it.
    const bool any = (*run)->head->made_by == MadeBy::latchkey;
    for (std::uint32_t generation = any ? (*run)->generation : 1; generation <= failed; ++generation)
      check(members.contains({id, generation}),
            "generation " + std::to_string(generation) + " failed without a dead letter: " + full_name(**run));
  }
}

// A waiting job must have a predecessor that can still release it.
void History::check_waits(const Run& waiting, Store& store) {
  const std::vector<RunId>& after = known(waiting).after[waiting.generation];
  if (after.empty()) return;
  const bool wanting = std::ranges::any_of(after, [&](const RunId& id) {
    const auto run = store.find(std::nullopt, id);
    if (!run || !*run || (*run)->as<Completed>()) return false;
    return (*run)->is_open() || waiting.head->on_failed == OnFailed::wait;
  });
  std::string predecessors;
  for (const RunId& id : after) {
    const auto run = store.find(std::nullopt, id);
    predecessors += run && *run ? " " + full_name(**run) : " " + to_string(id).substr(24) + " (gone)";
  }
  check(wanting, "waits for nothing: " + full_name(waiting) + " after" + predecessors);
}

}  // namespace latchkey::sim
