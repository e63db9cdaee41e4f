#include "store/apply.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/seeded_bug.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

// True for a request without a guarded key that has a claim id: a repeat is recognised by the claim id.
bool is_by_call(const auto& request) {
  return (request.key.empty() || request.guard == Guard::none) && !request.claim.is_nil() &&
         !LK_SEEDED(call_without_key_forgotten);
}

// The hash of the claim id has four parts, the hash of a key three, so the two cannot be equal.
Digest hash_of(const auto& request) {
  if (!is_by_call(request)) return request.key_hash;
  const auto* name = reinterpret_cast<const char*>(request.claim.bytes.data());
  return thread_sha256()
      .add_prefixed(request.tenant)
      .add_prefixed(request.function)
      .add_prefixed("")
      .add_prefixed({name, request.claim.bytes.size()})
      .finish();
}

// A repeat by claim id must have the same input. The key is not compared: it may have been built from the time.
std::optional<Fingerprint> fingerprint_of(const auto& request) {
  if (is_by_call(request)) return thread_sha256().add_prefixed(request.input).finish();
  return request.guard == Guard::once ? request.fingerprint : std::nullopt;
}

bool is_another_call(const std::optional<Run>& latest, const auto& request) {
  return latest && is_by_call(request) && latest->head->fingerprint != fingerprint_of(request);
}

std::shared_ptr<RunHead> make_head(const auto& request, RunId id, Instant now) {
  auto head = std::make_shared<RunHead>();
  head->id = id;
  head->tenant = request.tenant;
  head->function = request.function;
  head->key = request.key;
  head->key_hash = hash_of(request);
  head->by_call = is_by_call(request);
  head->guard = request.key.empty() ? Guard::none : request.guard;
  head->on_doubt = request.on_doubt;
  head->fingerprint = fingerprint_of(request);
  head->retry = request.retry;
  head->window = request.window;
  head->lease = request.lease;
  head->created_at = now;
  head->input = request.input;
  head->caller = request.caller;
  head->claim = request.claim;
  return head;
}

std::optional<Digest> hash_if_found(const auto& request) {
  if (!is_by_call(request) && (request.key.empty() || request.guard == Guard::none)) return std::nullopt;
  return hash_of(request);
}

std::optional<Run> find_latest(Applying with, const auto& request) {
  const auto hash = hash_if_found(request);
  if (!hash) return std::nullopt;
  return with.tables.find_latest({request.tenant, request.function, request.key, *hash});
}

std::optional<Run> find_for(Applying with, const std::optional<std::string>& tenant, RunId id) {
  if (tenant && with.tables.is_locked_foreign_run(id, *tenant)) return std::nullopt;
  auto run = with.tables.find(id);
  if (run && tenant && run->head->tenant != *tenant && !LK_SEEDED(tenant_not_checked)) return std::nullopt;
  return run;
}

// Writes one change, and the dead letter of a run that has now failed.
std::optional<Uuid> write_one(Applying with, const Run& before, const Run& after) {
  with.tables.update(before, after);
  // A later generation must not wait for the predecessors of this one.
  if (before.waiting_for > 0 && after.is_settled()) with.tables.remove_waits_of(after.id());
  const auto* failed = after.as<Failed>();
  if (!failed || before.as<Failed>()) return std::nullopt;
  if (LK_SEEDED(dead_letter_skipped) && failed->effect == Effect::unknown) return std::nullopt;
  return with.tables.add_dead_letter(after);
}

// Releases or ends the runs that wait for a settled run, and the dependents of those that it ends.
void release_dependents(Applying with, const Run& settled) {
  std::vector<Run> ended;
  Run predecessor;
  for (const Run* each = &settled;; each = &predecessor) {
    for (const RunId& id : with.tables.dependents(each->id())) {
      const auto dependent = with.tables.find(id);
      if (!dependent) continue;
      auto next = decide_predecessor(*dependent, *each, with.now);
      if (!next && dependent->is_open() && dependent->waiting_for > 0) continue;  // it waits for other predecessors
      with.tables.remove_wait(each->id(), id);
      if (!next) continue;
      write_one(with, *dependent, *next);
      if (next->is_settled()) ended.push_back(std::move(*next));
    }
    if (ended.empty()) return;
    predecessor = std::move(ended.back());
    ended.pop_back();
  }
}

// Writes a change, its dead letter, and the changes of the run's dependents.
std::optional<Uuid> write(Applying with, const Run& before, const Run& after) {
  const auto dead_letter = write_one(with, before, after);
  if (after.is_settled() && with.tables.has_waits()) release_dependents(with, after);
  return dead_letter;
}

// Applies the run's deadline, if it has passed, and writes the result. The reply to a request must not depend on
// whether the sweep has run already.
Run pass_time(Applying with, Run run) {
  auto ended = decide_deadline(run, with.now);
  if (!ended) return run;
  write(with, run, *ended);
  return *std::move(ended);
}

// The runs that `after` names, without repetitions.
Result<std::vector<Run>> find_predecessors(Applying with, const EnqueueRequest& request) {
  std::vector<Run> found;
  for (const RunId& id : request.after) {
    if (std::ranges::find(found, id, &Run::id) != found.end()) continue;
    auto run = find_for(with, request.tenant, id);
    if (!run) return fail(Code::PREDECESSOR_UNKNOWN, "`after` names " + to_string(id) + ", which does not exist");
    found.push_back(std::move(*run));
  }
  return found;
}

// Writes a queued run (a new one, or `before` opened again). It waits for each predecessor that has not ended as
// required. Returns the run with its final state.
Run start_waiting(Applying with, Run queued, const Run* before, const std::vector<Run>& predecessors) {
  queued.waiting_for = static_cast<std::uint32_t>(predecessors.size());
  if (before) {
    with.tables.update(*before, queued);
  } else {
    with.tables.insert(queued);
  }
  if (predecessors.empty()) return queued;
  Run run = queued;
  for (const Run& predecessor : predecessors) {
    if (auto next = decide_predecessor(run, predecessor, with.now)) {
      run = std::move(*next);
    } else if (run.is_open()) {
      with.tables.add_wait(predecessor.id(), run.id());
    }
  }
  if (run.waiting_for != queued.waiting_for || run.is_settled()) write(with, queued, run);
  return run;
}

bool has_open_dependent(Applying with, RunId id) {
  for (const RunId& dependent : with.tables.dependents(id)) {
    const auto run = with.tables.find(dependent);
    if (run && run->is_open()) return true;
  }
  return false;
}

// The claim id of a follow-up. It is derived, so that a repeated settle finds the same follow-up.
ClaimId name_follow_up(const Run& parent, std::size_t position) {
  const Digest digest =
      thread_sha256().add_prefixed(to_string(parent.id())).add_prefixed(std::to_string(position)).finish();
  ClaimId id;
  std::copy_n(digest.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

// Completes the request of a follow-up. A follow-up without a key gets one from its parent's id and its position. A
// follow-up with a key is an ordinary request for that key, in the tenant of its parent.
EnqueueRequest own_key(EnqueueRequest follow_up, const Run& parent, std::size_t position) {
  follow_up.tenant = parent.head->tenant;
  if (follow_up.key.empty()) {
    follow_up.made_by = MadeBy::latchkey;
    follow_up.key = "follow-up:" + to_string(parent.id()) + ":" + std::to_string(position);
    follow_up.guard = Guard::once;
  }
  follow_up.key_hash = thread_sha256()
                           .add_prefixed(follow_up.tenant)
                           .add_prefixed(follow_up.function)
                           .add_prefixed(follow_up.key)
                           .finish();
  follow_up.claim = name_follow_up(parent, position);
  return follow_up;
}

// The replies for the follow-ups of a completion that was settled before.
std::vector<EnqueueReply> find_follow_ups(Applying with, const Run& parent, const Ending& ending) {
  std::vector<EnqueueReply> found;
  const auto* complete = std::get_if<Complete>(&ending);
  for (std::size_t i = 0; complete && i < complete->follow_ups.size(); ++i) {
    const EnqueueRequest request = own_key(complete->follow_ups[i], parent, i);
    std::optional<Run> latest = find_latest(with, request);
    if (latest) latest = pass_time(with, *std::move(latest));
    EnqueueDecision decision = decide_enqueue(latest, request, with.now);
    if (auto* existing = std::get_if<UseExisting>(&decision)) found.push_back(std::move(existing->reply));
  }
  return found;
}

// True if this call (by its claim id) already has the run of its previous key.
bool is_made_before(Applying with, const ClaimRequest& request) {
  if (request.key_before.empty() || request.claim.is_nil() || request.guard == Guard::none) return false;
  const auto run =
      with.tables.find_latest({request.tenant, request.function, request.key_before, request.key_before_hash});
  if (!run) return false;
  const auto* running = run->as<Running>();
  const bool own = run->head->claim == request.claim || (running && running->claim == request.claim);
  const bool failed = run->as<Failed>() && run->head->guard == Guard::once;
  return own && (run->is_open() || run->in_window(with.now) || failed);
}

}  // namespace

std::optional<Digest> lookup_hash(const ClaimRequest& request) { return hash_if_found(request); }
std::optional<Digest> lookup_hash(const EnqueueRequest& request) { return hash_if_found(request); }

ClaimReply apply_claim(Applying with, const ClaimRequest& request) {
  if (is_made_before(with, request)) {
    ClaimRequest same = request;
    same.key = std::exchange(same.key_before, {});
    same.key_hash = request.key_before_hash;
    return apply_claim(with, same);
  }
  const std::optional<Run> latest = find_latest(with, request);
  if (is_another_call(latest, request)) return Mismatch{latest->id()};
  const Fence fence = with.tables.peek_fence();
  ClaimDecision decision = decide_claim(latest, request, fence, with.now);

  if (auto* refuse = std::get_if<Refuse>(&decision)) {
    if (refuse->next) write(with, *latest, *refuse->next);
    return std::move(refuse->reply);
  }
  if (!(LK_SEEDED(fence_reused) && latest)) with.tables.draw_fence();
  if (auto* start = std::get_if<StartNew>(&decision)) {
    if (start->ended) write(with, *latest, *start->ended);
    Run run = start_claimed(make_head(request, with.tables.next_id(with.now), with.now), request, fence, with.now);
    with.tables.insert(run);
    const Instant lease_until = std::get<Running>(run.state).lease_until;
    return Won{std::move(run), fence, lease_until};
  }
  auto& again = std::get<StartAgain>(decision);
  if (again.ended) write(with, *latest, *again.ended);
  with.tables.update(again.ended ? *again.ended : *latest, again.next);
  const Instant lease_until = std::get<Running>(again.next.state).lease_until;
  return Won{std::move(again.next), fence, lease_until};
}

EnqueueReply apply_enqueue(Applying with, const EnqueueRequest& request) {
  std::optional<Run> latest = find_latest(with, request);
  if (is_another_call(latest, request)) return Mismatch{latest->id()};
  // Deadlines first: the reply must not depend on whether the sweep has run already.
  const std::optional<Run> ended = latest ? decide_deadline(*latest, with.now) : std::nullopt;
  EnqueueDecision decision = decide_enqueue(ended ? ended : latest, request, with.now);
  auto* existing = std::get_if<UseExisting>(&decision);
  if (existing && std::holds_alternative<Mismatch>(existing->reply)) return std::move(existing->reply);
  auto predecessors = existing ? Result<std::vector<Run>>{} : find_predecessors(with, request);
  if (!predecessors) return predecessors.error();
  if (ended) {
    write(with, *latest, *ended);
    latest = ended;
  }
  if (existing) return std::move(existing->reply);
  if (auto* reopened = std::get_if<Reopen>(&decision)) {
    std::erase_if(*predecessors,
                  [&](const Run& run) { return run.id() == latest->id(); });  // a run does not wait for itself
    return Enqueued{start_waiting(with, std::move(reopened->next), &*latest, *predecessors), false};
  }
  auto head = make_head(request, with.tables.next_id(with.now), with.now);
  head->priority = request.priority;
  head->made_by = request.made_by;
  head->on_failed = request.on_failed;
  Run run = start_queued(std::move(head), add_capped(with.now, request.delay), 0);
  return Enqueued{start_waiting(with, std::move(run), nullptr, *predecessors), false};
}

namespace {

// Takes ready jobs. Returns false if a job past its retry total could not be ended: other ready jobs may follow it.
bool take_ready(Applying with, const TakeRequest& request, std::vector<Taken>& taken) {
  bool is_done = true;
  for (const RunId& id : with.tables.ready(request, with.now)) {
    if (taken.size() == request.limit) break;
    const auto run = with.tables.find(id);
    LK_ASSERT(run);
    if (const auto late = decide_deadline(*run, with.now)) {  // no retry starts after the retry total
      is_done &= with.tables.try_isolated(id, [&] { write(with, *run, *late); });
      continue;
    }
    const Fence fence = with.tables.peek_fence();
    auto next = decide_take(*run, request, fence, with.now);
    LK_ASSERT(next);
    with.tables.draw_fence();
    with.tables.update(*run, *next);
    const Instant lease_until = std::get<Running>(next->state).lease_until;
    taken.push_back({std::move(*next), fence, lease_until});
  }
  return is_done;
}

}  // namespace

std::vector<Taken> apply_take(Applying with, const TakeRequest& request) {
  std::vector<Taken> taken;
  while (!take_ready(with, request, taken) && taken.size() < request.limit) {
  }
  return taken;
}

ExtendReply apply_extend(Applying with, const ExtendRequest& request) {
  const auto run = find_for(with, request.tenant, request.id);
  if (!run) return Error{Code::NOT_FOUND, "no such run"};
  ExtendDecision decision = decide_extend(*run, request, with.now);
  if (decision.next) with.tables.update(*run, *decision.next);
  return decision.reply;
}

SettleReply apply_settle(Applying with, const SettleRequest& request) {
  const auto run = find_for(with, request.tenant, request.id);
  if (!run) return Error{Code::NOT_FOUND, "no such run"};
  const Dice dice{run->head->retry.jitter == Jitter::none ? 0.0
                                                          : static_cast<double>(with.random.next() >> 11) * 0x1.0p-53};
  SettleDecision decision = decide_settle(*run, request, dice, with.now);
  if (decision.refused) return *decision.refused;
  if (!decision.next)
    return Settled{*run, false, with.tables.dead_letter_of(*run), find_follow_ups(with, *run, request.ending)};
  std::vector<EnqueueRequest> follow_ups;
  if (const auto* complete = std::get_if<Complete>(&request.ending)) {
    for (std::size_t i = 0; i < complete->follow_ups.size(); ++i) {
      follow_ups.push_back(own_key(complete->follow_ups[i], *run, i));
      if (auto known = find_predecessors(with, follow_ups.back()); !known) return known.error();
    }
  }
  const auto dead_letter = write(with, *run, *decision.next);
  Settled settled{std::move(*decision.next), true, dead_letter, {}};
  for (const EnqueueRequest& follow_up : follow_ups) settled.follow_ups.push_back(apply_enqueue(with, follow_up));
  return settled;
}

MoveReply apply_move(Applying with, const MoveRequest& request) {
  auto run = find_for(with, request.tenant, request.id);
  if (!run) return Error{Code::NOT_FOUND, "no such run"};
  if (!LK_SEEDED(action_before_deadline)) run = pass_time(with, *std::move(run));
  const Uuid fresh = make_uuid_v7(with.now, with.random.next(), with.random.next());
  MoveDecision decision = decide_move(*run, request.move, fresh, with.now);
  if (decision.refused) return *decision.refused;
  if (!decision.next) return Moved{*run, false};
  // A run that is opened again takes its key. So does one that is resolved as completed under `once`.
  const bool done = decision.next->as<Completed>() && run->head->guard == Guard::once;
  const bool takes_key = run->is_settled() && (decision.next->is_open() || done);
  if (takes_key && run->head->guarded()) {
    const RunHead& head = *run->head;
    const auto latest = with.tables.find_latest({head.tenant, head.function, head.key, head.key_hash});
    if (latest && latest->id() != run->id() && (latest->is_open() || latest->in_window(with.now)))
      return Error{Code::MOVE_REFUSED, "the key belongs to a newer run: " + to_string(latest->id())};
    // Also if the newer run of the key was purged.
    if (!latest || latest->id() != run->id()) with.tables.set_latest_run_of_key(*run);
  }
  write(with, *run, *decision.next);
  return Moved{std::move(*decision.next), true};
}

Swept apply_sweep(Applying with, std::uint32_t limit) {
  Swept swept;
  const auto ids = with.tables.overdue(with.now, limit);
  for (const RunId& id : ids) {
    const bool is_done = with.tables.try_isolated(id, [&] {
      const auto run = with.tables.find(id);
      LK_ASSERT(run);
      const auto next = decide_deadline(*run, with.now);
      LK_ASSERT(next);
      LK_SEEDED(dependents_forgotten) ? write_one(with, *run, *next) : write(with, *run, *next);
    });
    if (is_done) swept.changed += 1;
  }
  swept.more = ids.size() == limit;
  return swept;
}

Swept apply_purge(Applying with, const Retention& retention, std::uint32_t limit) {
  Swept swept;
  // A run is settled after it was created, so runs younger than the retention need no check.
  const Duration retained = std::min({retention.done, retention.failed, with.now.time_since_epoch()});
  const PurgeSlice slice = with.tables.purge_candidates(with.now - retained, limit);
  for (const Run& run : slice.runs) {
    if (!may_purge(run, retention, with.now)) continue;
    bool is_gone = false;
    const bool is_done = with.tables.try_isolated(run.id(), [&] {
      const bool is_needed =
          with.tables.has_unacknowledged_dead_letter(run.id()) && !LK_SEEDED(purge_ignores_dead_letter);
      if (is_needed || has_open_dependent(with, run.id())) return;
      for (const RunId& dependent : with.tables.dependents(run.id())) with.tables.remove_wait(run.id(), dependent);
      with.tables.erase_members(run.id());
      with.tables.erase(run);
      is_gone = true;
    });
    if (is_done && is_gone) swept.changed += 1;
  }
  swept.more = slice.more;
  return swept;
}

}  // namespace latchkey
