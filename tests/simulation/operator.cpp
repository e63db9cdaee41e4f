#include "engine/await.hpp"
#include "simulation/cast.hpp"
#include "simulation/link.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

Move draw_move(Process& me) {
  switch (me.random.below(6)) {
    case 0:
      return CancelByHand{};
    case 1:
    case 2:
      return RetryByHand{me.random.one_in(2)};
    case 3:
      return ResolveCompleted{"resolved by " + me.name + " " + std::to_string(me.random.next())};
    case 4:
      return ResolveFailed{"it did not happen"};
    default:
      return ResolveRerun{};
  }
}

std::string other_than(const std::string& tenant) { return tenant == kTenants[0] ? kTenants[1] : kTenants[0]; }

// Another tenant's run does not exist: it can be neither changed nor settled.
Task<void> try_foreign_run(Process& me, SimLink& link, const Run& run) {
  const std::string tenant = other_than(run.head->tenant);
  const auto moved = co_await move(link, {.tenant = tenant, .id = run.id(), .move = draw_move(me)});
  if (moved) me.world.history.check(std::holds_alternative<Error>(*moved), "another tenant changed a run");
  std::vector<SettleRequest> settles{
      {.tenant = tenant, .id = run.id(), .fence = run.fence, .ending = Complete{"mine", {}}}};
  const auto settled = co_await settle(link, std::move(settles));
  if (!settled) co_return;
  const auto* error = std::get_if<Error>(&settled->front());
  me.world.history.check(error && error->code == Code::NOT_FOUND,
                         "another tenant settled a run, or got a reply about it");
}

void acknowledge_some(Process& me, Store& store) {
  const auto page = store.list_dead_letters({.limit = 20});
  if (!page || page->entries.empty()) return;
  const DeadLetter& entry = page->entries[me.random.below(page->entries.size())];
  me.world.history.check(store.acknowledge(entry.tenant, entry.id, me.name).has_value(), "not acknowledged");
}

Move draw_letter_move(Process& me) {
  switch (me.random.below(3)) {
    case 0:
      return RetryByHand{me.random.one_in(2)};
    case 1:
      return ResolveCompleted{"of a dead letter, by " + me.name + " " + std::to_string(me.random.next())};
    default:
      return ResolveFailed{"let it be"};
  }
}

// Acts on all members of an entry or on one of them; an entry of another tenant does not exist.
void act_on_dead_letter(Process& me, Store& store) {
  const auto page = store.list_dead_letters({.with_acknowledged = me.random.one_in(2), .limit = 20});
  if (!page || page->entries.empty()) return;
  const DeadLetter& entry = page->entries[me.random.below(page->entries.size())];
  DeadLetterActionRequest wish{
      .tenant = entry.tenant, .dead_letter = entry.id, .move = draw_letter_move(me), .by = me.name};
  const bool foreign = me.random.one_in(5);
  if (foreign) wish.tenant = other_than(entry.tenant);
  const auto members = store.list_members(entry.id, 100);
  if (members && !members->empty() && me.random.one_in(2))
    wish.runs = {(*members)[me.random.below(members->size())].run};
  const auto moved = store.act_on_dead_letter(wish);
  me.world.history.check(moved.has_value(), "an action on a dead letter failed");
  if (!moved) return;
  me.world.history.check(!(foreign && *moved), "another tenant changed a dead letter");
  me.world.trace(me.name + " acts on the dead letter " + to_string(entry.id).substr(24));
  if (*moved) me.world.history.saw(wish, **moved, store);
}

}  // namespace

Task<void> live_as_operator(Process& me) {
  SimLink& link = *me.link;
  while (me.world.faults) {
    co_await me.clock.wait(me.world.span(200ms, 3s));
    if (!me.world.engine) continue;
    Store& store = me.world.engine->store();
    const auto page = store.list({.limit = 30});
    if (!page || page->runs.empty()) continue;
    const Run run = page->runs[me.random.below(page->runs.size())];
    if (me.random.one_in(3)) acknowledge_some(me, store);
    if (me.random.one_in(3)) act_on_dead_letter(me, store);
    if (me.random.one_in(4)) {
      co_await try_foreign_run(me, link, run);
    } else {
      MoveRequest request{.tenant = run.head->tenant, .id = run.id(), .move = draw_move(me)};
      co_await move(link, std::move(request));
    }
  }
}

}  // namespace latchkey::sim
