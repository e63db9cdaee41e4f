#include "simulation/history.hpp"

#include <algorithm>

#include "simulation/oracle.hpp"

namespace latchkey::sim {
namespace {

std::string name_of(const Run& run) {
  return to_string(run.id()).substr(24) + " (" + run.head->tenant + "/" + run.head->function + "/" + run.head->key +
         ", generation " + std::to_string(run.generation) + ", " + std::string(to_string(run.status())) + ")";
}

constexpr std::uint32_t kRetriesMax = 3;  // no request in these worlds allows more

std::string name_of(Fence fence) { return "fence " + std::to_string(static_cast<std::uint64_t>(fence)); }

}  // namespace

void History::check(bool good, const std::string& what) {
  if (!good && violations.size() < 20) violations.push_back(std::to_string(clock_.elapsed().count()) + " ms: " + what);
}

// A run without a guarded key is a key of its own.
History::KeyId History::key_of(const Run& run) {
  if (!run.head->guarded() || run.head->by_call) return to_string(run.id());
  return run.head->tenant + '\x1f' + run.head->function + '\x1f' + run.head->key;
}

History::Known& History::known(const Run& run) { return runs_.try_emplace(run.id(), Known{.last = run}).first->second; }

bool History::is_newest(RunId run, Fence fence) const {
  const auto at = newest_.find(run);
  return at != newest_.end() && at->second == fence;
}

// Compares the run with its last observed state.
void History::observe(const Run& run) {
  Known& seen = known(run);
  const Run& was = seen.last;
  check(!seen.purged, "a run that was purged is back: " + name_of(run));
  check(run.fence >= was.fence, "the fence fell: " + name_of(run));
  check(run.generation >= was.generation, "the generation fell: " + name_of(run));
  check(run.generation > was.generation || run.attempt >= was.attempt, "the attempt fell: " + name_of(run));
  check(run.attempt <= run.attempts_max, "an attempt beyond the limit: " + name_of(run));
  const bool by_hand = was.as<Cancelled>() && was.head->made_by == MadeBy::latchkey && run.generation > was.generation;
  if ((was.as<Completed>() || was.as<Cancelled>()) && !by_hand)
    check(run.state == was.state, "a settled run changed: " + name_of(was) + " is now " + name_of(run));
  if (const auto* running = was.as<Running>(); running && running->cancel_requested && run.fence == was.fence)
    check(run.as<Running>() || run.as<Completed>() || run.as<Cancelled>(),
          "a cancel request was forgotten: " + name_of(run));
  const auto* done = run.as<Completed>();
  if (done && !seen.result && std::ranges::count(seen.possible_results, done->result) > 0) completed(run, done->result);
  if (done) check(seen.result == done->result, "the stored result is not the accepted one: " + name_of(run));
  seen.last = run;
}

void History::issued(const Won& won, Instant now, bool is_repeat) {
  const Run& run = won.run;
  if (const auto again = owners_.find(won.fence); again != owners_.end()) {
    check(is_repeat && again->second.run == run.id(), name_of(won.fence) + " was issued twice: " + name_of(run));
    return;
  }
  auto& fences = by_key_[key_of(run)];
  check(fences.empty() || fences.back() < won.fence, name_of(won.fence) + " does not rise: " + name_of(run));
  for (const Fence older : fences) {
    const Owner& owner = owners_.at(older);
    const bool doubtful = run.head->on_doubt == OnDoubt::hold && owner.run == run.id() && !owner.ended;
    check(!doubtful, "another attempt in spite of doubt: " + name_of(run));
    check(owner.ended || owner.lease_until <= now,
          name_of(won.fence) + " was issued while the lease of " + name_of(older) + " was good: " + name_of(run));
  }
  fences.push_back(won.fence);
  owners_[won.fence] = {.run = run.id(),
                        .key = key_of(run),
                        .claim = run.as<Running>() ? run.as<Running>()->claim : ClaimId{},
                        .lease_until = won.lease_until,
                        .issued_at = clock_.elapsed()};
  newest_[run.id()] = won.fence;
  Known& seen = known(run);
  const std::uint32_t attempts = ++seen.attempts[run.generation];
  check(attempts <= allowed_retries(seen, run) + 1 + seen.extra_attempts[run.generation],
        "attempt " + std::to_string(attempts) + " is beyond the limit: " + name_of(run));
  observe(run);
}

// The retries of the run's generation, from the request that opened it. The maximum if an operator opened it, or if its
// reply was lost.
std::uint32_t History::allowed_retries(const Known& seen, const Run& run) {
  if (run.generation == 1) return run.head->retry.retries;
  const auto said = seen.retries.find(run.generation);
  return said == seen.retries.end() ? kRetriesMax : said->second;
}

void History::completed(const Run& run, const Bytes& result) {
  Known& seen = known(run);
  check(seen.completed.insert(run.generation).second, "settled twice in one generation: " + name_of(run));
  check(!seen.result, "completed twice: " + name_of(run));
  seen.result = result;
}

void History::saw(const ClaimRequest& request, const Before& before, const ClaimReply& reply, Store& store,
                  bool exact) {
  const Instant now = store.now();
  check(now >= latest_now_, "the store's clock ran backwards");
  latest_now_ = std::max(latest_now_, now);
  if (exact)
    if (const std::string wrong = find_wrong(before.run, request, reply, now); !wrong.empty())
      check(false, wrong + " (" + request.tenant + "/" + request.function + "/" + request.key + ")");
  if (const auto* won = std::get_if<Won>(&reply)) {
    const auto owner = owners_.find(won->fence);
    if (exact && before.run && won->run.id() == before.run->id() && won->run.generation > before.run->generation)
      known(won->run).retries[won->run.generation] = request.retry.retries;
    issued(*won, now, owner != owners_.end() && owner->second.claim == request.claim);
    check(won->run.head->tenant == request.tenant, "a claim won another tenant's run");
    return;
  }
  std::visit(
      [&]<class T>(const T& refused) {
        if constexpr (std::is_same_v<T, Mismatch>) {
          suppressed_[refused.existing] += 1;
        } else {
          check(refused.run.head->tenant == request.tenant, "a claim was answered with another tenant's run");
          suppressed_[refused.run.id()] += 1;
          if constexpr (!std::is_same_v<T, Won>) observe(refused.run);
        }
      },
      reply);
}

void History::saw(const EnqueueRequest& request, const Before& before, const EnqueueReply& reply, Store& store,
                  bool exact) {
  const bool keyed = !request.key.empty() && request.guard != Guard::none;
  if (exact && keyed)
    if (const std::string wrong = find_wrong(before.run, request, reply, store.now()); !wrong.empty())
      check(false, wrong + " (" + request.tenant + "/" + request.function + "/" + request.key + ")");
  if (const auto* mismatch = std::get_if<Mismatch>(&reply)) suppressed_[mismatch->existing] += 1;
  const auto* enqueued = std::get_if<Enqueued>(&reply);
  if (!enqueued) return;
  check(enqueued->run.head->tenant == request.tenant, "an enqueue was answered with another tenant's run");
  if (enqueued->duplicate) suppressed_[enqueued->run.id()] += 1;
  if (!keyed && !request.claim.is_nil()) {
    const RunId made = made_by_.try_emplace(request.claim, enqueued->run.id()).first->second;
    const auto existing = store.find(std::nullopt, made);  // a purged run is forgotten with its claim id
    check(made == enqueued->run.id() || (existing && !*existing), "one call made two jobs: " + name_of(enqueued->run));
    check(!enqueued->duplicate, "a repeated call got its own job as a duplicate: " + name_of(enqueued->run));
  }
  const Run& run = enqueued->run;
  const bool made = run.head->claim == request.claim, opened = run.opened_by == request.claim;
  if (!request.claim.is_nil() && (made || opened)) {
    const std::uint32_t generation = opened ? run.generation : 1;
    known(run).after[generation] = request.after;
    known(run).retries[generation] = request.retry.retries;
  }
  observe(run);
}

void History::saw(const TakeRequest& request, const std::vector<Taken>& taken, Store& store) {
  check(taken.size() <= request.limit, "more jobs were taken than the limit");
  for (const Taken& one : taken) {
    issued(one, store.now(), false);
    check(one.run.waiting_for == 0, "a waiting job was taken: " + name_of(one.run));
    const bool strict = one.run.head->on_failed != OnFailed::run;
    for (const RunId& predecessor : known(one.run).after[one.run.generation]) {
      const auto first = runs_.find(predecessor);
      if (strict && predecessor != one.run.id() && first != runs_.end())
        check(first->second.last.as<Completed>() || first->second.result.has_value(),
              "taken before its predecessor completed: " + name_of(one.run));
    }
  }
}

void History::saw(const ExtendRequest& request, const Before& before, const ExtendReply& reply, bool exact) {
  const auto* extended = std::get_if<Extended>(&reply);
  if (extended) {
    check(is_newest(request.id, request.fence),
          "a heartbeat was accepted from an older owner, " + name_of(request.fence));
    if (const auto owner = owners_.find(request.fence); owner != owners_.end())
      owner->second.lease_until = std::max(owner->second.lease_until, extended->lease_until);
  }
  if (!exact || !before.run) return;
  const bool owns = before.run->as<Running>() && before.run->fence == request.fence &&
                    (!request.tenant || *request.tenant == before.run->head->tenant);
  check(owns == (extended != nullptr), "wrong reply to a heartbeat: " + name_of(*before.run));
}

void History::saw(const SettleRequest& request, const Before& before, const SettleReply& reply, bool exact) {
  const auto* settled = std::get_if<Settled>(&reply);
  if (exact && before.run) {
    const Run& was = *before.run;
    const bool owns = was.fence == request.fence && (!request.tenant || *request.tenant == was.head->tenant);
    const bool may = owns && (was.as<Running>() || was.as<InDoubt>());
    check(!may || settled, "the owner's settle was refused: " + name_of(was));
    check(owns || !settled, "a stranger's settle was accepted: " + name_of(was));
    // After the attempt has ended, a release may only cancel the retry delay.
    const bool waits =
        owns && was.as<Queued>() && was.origin == Origin::claimed && std::holds_alternative<Release>(request.ending);
    check(may || waits || !settled || !settled->changed, "a late settle was accepted: " + name_of(was));
    if (waits && settled)
      check(settled->run.attempts_max == was.attempts_max && settled->run.as<Queued>() &&
                settled->run.as<Queued>()->due_at <= was.as<Queued>()->due_at,
            "the release of a retry delay changed more than the delay: " + name_of(was));
  }
  if (!settled) return;
  if (!settled->changed) return observe(settled->run);
  for (std::size_t i = 0; i < settled->follow_ups.size(); ++i) {
    const EnqueueReply& follow_up = settled->follow_ups[i];
    if (const auto* mismatch = std::get_if<Mismatch>(&follow_up)) suppressed_[mismatch->existing] += 1;
    const auto* made = std::get_if<Enqueued>(&follow_up);
    if (made && made->duplicate) suppressed_[made->run.id()] += 1;
    if (made && !made->duplicate)
      known(made->run).retries[made->run.generation] =
          std::get<Complete>(request.ending).follow_ups.at(i).retry.retries;
  }
  check(is_newest(request.id, request.fence), "a settle was accepted from an older owner, " + name_of(request.fence));
  const auto owner = owners_.find(request.fence);
  check(owner != owners_.end(), "a settle was accepted for a fence that was never issued, " + name_of(request.fence));
  if (owner != owners_.end()) owner->second.ended = true;
  if (const auto* complete = std::get_if<Complete>(&request.ending)) {
    completed(settled->run, complete->result);
    check(settled->run.as<Completed>() != nullptr, "a completion did not complete: " + name_of(settled->run));
  }
  const auto* queued = settled->run.as<Queued>();
  if (queued && queued->by == QueuedBy::release) known(settled->run).extra_attempts[settled->run.generation] += 1;
  check(!settled->run.as<Failed>() || settled->dead_letter, "failed without a dead letter: " + name_of(settled->run));
  observe(settled->run);
}

void History::saw(const MoveRequest& request, const Before& before, const MoveReply& reply, Instant now, bool exact) {
  const auto* moved = std::get_if<Moved>(&reply);
  const auto* running = exact && before.run ? before.run->as<Running>() : nullptr;
  if (running && now >= running->lease_until && (!request.tenant || *request.tenant == before.run->head->tenant)) {
    // Deadlines apply first: the run is not running any more, whether a sweep has recorded that or not.
    const bool doubt = before.run->head->on_doubt == OnDoubt::hold && !running->cancel_requested;
    const bool cancels = std::holds_alternative<CancelByHand>(request.move);
    if (cancels) check(moved && moved->run.as<Cancelled>(), "not cancelled at once: " + name_of(*before.run));
    const bool decides = !cancels && !std::holds_alternative<RetryByHand>(request.move);
    if (doubt && decides) check(moved, "an operator could not resolve a run after its lease: " + name_of(*before.run));
  }
  if (!moved) return;
  check(!request.tenant || *request.tenant == moved->run.head->tenant,
        "an operator action changed another tenant's run");
  if (moved->changed) acted_on(request.move, moved->run);
  observe(moved->run);
}

// The settle may have ended the attempt, allowed another one, or stored the result. The next observation of the run
// shows which.
void History::unanswered(const SettleRequest& request) {
  if (const auto owner = owners_.find(request.fence); owner != owners_.end()) owner->second.ended = true;
  const auto seen = runs_.find(request.id);
  if (seen == runs_.end()) return;
  seen->second.extra_attempts[seen->second.last.generation] += 1;
  if (const auto* complete = std::get_if<Complete>(&request.ending))
    seen->second.possible_results.push_back(complete->result);
}

void History::unanswered(const MoveRequest& request) {
  const auto seen = runs_.find(request.id);
  if (seen == runs_.end()) return;
  if (const auto* resolve = std::get_if<ResolveCompleted>(&request.move))
    seen->second.possible_results.push_back(resolve->result);
  if (const auto owner = newest_.find(request.id); owner != newest_.end()) owners_.at(owner->second).ended = true;
  seen->second.extra_attempts[seen->second.last.generation] += 1;
}

void History::acted_on(const Move& move, const Run& run) {
  if (const auto* resolve = std::get_if<ResolveCompleted>(&move)) completed(run, resolve->result);
  const bool resolved = std::holds_alternative<ResolveRerun>(move) || std::holds_alternative<ResolveFailed>(move);
  if (const auto owner = owners_.find(run.fence); resolved && owner != owners_.end())
    owner->second.ended = true;  // the operator decided so
  if (std::holds_alternative<ResolveRerun>(move)) known(run).extra_attempts[run.generation] += 1;
}

// An action on a member changes its run as it failed there, and is recorded in the member, once.
void History::saw(const DeadLetterActionRequest& wish, const DeadLetterActionReply& moved, Store& store) {
  const bool retry = std::holds_alternative<RetryByHand>(wish.move);
  const auto members = store.list_members(wish.dead_letter, 10'000);
  check(members.has_value(), "a dead letter's members cannot be listed");
  if (!members) return;
  const bool whole = moved.next.empty();  // else a later failure of the same run may be in the next slice
  for (const MemberActionReply& one : moved.members) {
    if (one.refused) continue;
    const auto run = store.find(std::nullopt, one.run);
    if (!one.changed) {
      const bool is_completed = run && *run && (*run)->as<Completed>() != nullptr;
      check(is_completed || !whole || !std::holds_alternative<ResolveCompleted>(wish.move),
            "a member was reported as completed and is not: " + to_string(one.run));
      continue;
    }
    check(run && *run, "a purged member was changed");
    if (!run || !*run) continue;
    const bool as_wished = retry                                                 ? (*run)->as<Queued>() != nullptr
                           : std::holds_alternative<ResolveCompleted>(wish.move) ? (*run)->as<Completed>() != nullptr
                                                                                 : (*run)->as<Failed>() != nullptr;
    check(as_wished, "a dead letter's member is not in the requested state: " + name_of(**run));
    acted_on(wish.move, **run);
    observe(**run);
    const std::uint32_t failed = (*run)->generation - (retry ? 1 : 0);
    const auto member = std::ranges::find_if(
        *members, [&](const DeadLetterMember& each) { return each.run == one.run && each.generation == failed; });
    check(member != members->end() && std::ranges::count(member->steps, wish.by, &MemberStep::by) > 0,
          "a step is not recorded at its failure: " + name_of(**run));
  }
  for (const DeadLetterMember& member : *members)
    for (std::size_t i = 1; i < member.steps.size(); ++i)
      check(member.steps[i - 1].kind < member.steps[i].kind, "a step was taken twice: " + to_string(member.run));
}

void History::effect_started(const Won& won) {
  const auto owner = owners_.find(won.fence);
  check(owner != owners_.end(), "an effect started under an unknown " + name_of(won.fence));
  if (owner == owners_.end()) return;
  check(!owner->second.started, "two effects under one " + name_of(won.fence) + ": " + name_of(won.run));
  owner->second.started = true;
}

void History::effect_acts(const Won& won, const Life& life, Duration last_forward_jump) {
  const auto owner = owners_.find(won.fence);
  if (owner == owners_.end()) return;
  // A paused process, or a jump of the wall clock, can lead to two owners; the fence protects the store then.
  if (life.last_pause_end >= owner->second.issued_at || last_forward_jump >= owner->second.issued_at) return;
  const auto& fences = by_key_[owner->second.key];
  const auto newer = std::ranges::upper_bound(fences, won.fence);
  if (newer != fences.end())
    check(owners_.at(*newer).issued_at >= clock_.elapsed(), "an effect acts under " + name_of(won.fence) + " after " +
                                                                name_of(*newer) + " was issued: " + name_of(won.run));
}

void History::caller_got_replay(const ClaimRequest& request, const Run& run) {
  const auto* done = run.as<Completed>();
  const auto seen = runs_.find(run.id());
  check(done && seen != runs_.end() && seen->second.result == done->result, "a replay of other bytes: " + name_of(run));
  check(run.head->tenant == request.tenant && run.head->key == request.key, "a replay of another key: " + name_of(run));
}

// A reply may be older than the store's current state, but a completion is final.
void History::caller_got_outcome(const Run& run) {
  const auto* done = run.as<Completed>();
  check(!done || known(run).result == done->result, "a caller got another result: " + name_of(run));
}

std::uint64_t History::suppressed(RunId run) const {
  const auto at = suppressed_.find(run);
  return at == suppressed_.end() ? 0 : at->second;
}

}  // namespace latchkey::sim
