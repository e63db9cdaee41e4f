#include "base/seeded_bug.hpp"
#include "model/decide.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

// A claimed run that may run again stays `running` after its lease, so that a late settle of its owner is accepted.
bool waits_for_caller(const Run& run) {
  const auto* running = run.as<Running>();
  return running && run.origin == Origin::claimed && run.head->on_doubt == OnDoubt::rerun &&
         !running->cancel_requested && run.attempt < run.attempts_max;
}

// The time from which no retry of this generation may start; none when there is no such time.
std::optional<Instant> retries_end(const Run& run) {
  if (run.head->retry.total == Duration::max()) return std::nullopt;
  return add_capped(add_capped(run.first_attempt_at, run.head->retry.total), Duration{1});
}

bool is_retry(const Queued& queued) {
  return queued.by == QueuedBy::failed_attempt || queued.by == QueuedBy::doubtful_attempt ||
         queued.by == QueuedBy::lease_end;
}

std::optional<Instant> earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

std::optional<Run> decide_take(const Run& run, const TakeRequest& request, Fence fence, Instant now) {
  const auto* queued = run.as<Queued>();
  if (!queued || run.origin != Origin::enqueued || run.waiting_for > 0 || now < queued->due_at) return std::nullopt;
  if (decide_deadline(run, now)) return std::nullopt;
  Run next = run;
  if (!LK_SEEDED(attempts_counted_at_failure) || next.attempt == 0) next.attempt += 1;
  next.attempts_total += 1;
  next.fence = fence;
  if (next.attempt == 1) next.first_attempt_at = now;
  const Duration lease = request.lease.value_or(run.head->lease);
  next.state = Running{.started_at = now,
                       .lease_until = add_capped(now, lease),
                       .claim = {},
                       .session = request.session,
                       .lease = lease};
  return next;
}

ExtendDecision decide_extend(const Run& run, const ExtendRequest& request, Instant now) {
  const auto* running = run.as<Running>();
  if (!running || (request.fence != run.fence && !LK_SEEDED(extend_ignores_fence)))
    return {{}, Error{Code::LEASE_LOST, "the lease is not yours any more"}};
  Running longer = *running;
  // A lease is never shortened by a heartbeat.
  longer.lease_until = std::max(running->lease_until, add_capped(now, request.lease.value_or(running->lease)));
  const Extended reply{longer.lease_until, longer.cancel_requested};
  if (longer == *running) return {{}, reply};
  return {with_state(run, longer), reply};
}

std::optional<Instant> next_deadline(const Run& run) {
  if (const auto* running = run.as<Running>()) {
    if (!waits_for_caller(run)) return running->lease_until;
    return std::max(running->lease_until, *earlier(running->lease_until + kNextClaimTimeout, retries_end(run)));
  }
  const auto* queued = run.as<Queued>();
  if (!queued) return std::nullopt;
  std::optional<Instant> deadline;
  if (run.origin == Origin::claimed) deadline = queued->due_at + kNextClaimTimeout;
  if (is_retry(*queued)) deadline = earlier(deadline, retries_end(run));
  return deadline;
}

std::optional<Run> decide_deadline(const Run& run, Instant now) {
  const auto deadline = next_deadline(run);
  if (!deadline || now < *deadline) return std::nullopt;
  if (run.as<Queued>()) return end_queued_as_failed(run, now);
  if (waits_for_caller(run)) return end_as_failed(run, kOutcomeUnknown, Effect::unknown, now);
  return end_lease(run, now);
}

std::optional<Run> decide_predecessor(const Run& run, const Run& predecessor, Instant now) {
  if (!run.as<Queued>() || run.waiting_for == 0 || predecessor.is_open()) return std::nullopt;
  Run next = run;
  if (predecessor.as<Completed>() || run.head->on_failed == OnFailed::run || LK_SEEDED(predecessor_failure_releases)) {
    next.waiting_for -= 1;
    return next;
  }
  switch (run.head->on_failed) {
    case OnFailed::skip:
      return with_state(run, Cancelled{now, std::string(kPredecessorFailed), Effect::none});
    case OnFailed::fail:
      return end_as_failed(run, kPredecessorFailed, Effect::none, now);
    default:
      return std::nullopt;
  }
}

bool may_purge(const Run& run, const Retention& retention, Instant now) {
  if (run.is_open()) return false;
  const Duration span = run.as<Failed>() ? retention.failed : retention.done;
  return now - run.settled_at() >= span && (!run.in_window(now) || LK_SEEDED(purge_ignores_window));
}

}  // namespace latchkey
