#include "base/seeded_bug.hpp"
#include "model/decide.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

Run fail_attempt(const Run& run, const Fail& fail, Dice dice, Instant now) {
  Run updated = run;
  updated.last_error = truncate_error(fail.message);
  updated.last_error_code = fail.code;
  if (LK_SEEDED(attempts_counted_at_failure)) updated.attempt += 1;
  const std::uint32_t failures = std::min(run.failures + 1, run.attempt);  // an attempt in doubt may fail twice
  if (fail.outcome_unknown && run.head->on_doubt == OnDoubt::hold) {
    updated.failures = failures;
    return with_state(updated, run.as<InDoubt>() ? *run.as<InDoubt>() : InDoubt{now});
  }
  const Effect effect = fail.outcome_unknown ? Effect::unknown : Effect::none;
  if (!fail.retryable && !fail.outcome_unknown) return end_as_failed(updated, kExecutionError, effect, now);
  Duration delay = run.head->retry.delay_after(failures, dice);
  if (fail.retry_after) delay = std::max(delay, std::min(*fail.retry_after, kRetryAfterMax));
  const Instant due_at = add_capped(now, delay);
  if (!is_attempt_allowed(run, due_at))
    return end_as_failed(updated, fail.outcome_unknown ? kOutcomeUnknown : kRetriesExceeded, effect, now);
  updated.failures = failures;
  return with_state(updated,
                    Queued{due_at, fail.outcome_unknown ? QueuedBy::doubtful_attempt : QueuedBy::failed_attempt});
}

Run requeue_released(const Run& run, Instant due_at) {
  Run next = with_state(run, Queued{due_at, QueuedBy::release});
  if (LK_SEEDED(release_lowers_attempt)) {
    next.attempt -= 1;
    return next;
  }
  next.attempts_max += 1;
  return next;
}

// True if the last attempt of a claimed run failed and the run waits for its next claim.
bool is_awaiting_retry(const Run& run) {
  const auto* queued = run.as<Queued>();
  return queued && run.origin == Origin::claimed &&
         (queued->by == QueuedBy::failed_attempt || queued->by == QueuedBy::doubtful_attempt);
}

// Release of a failed attempt: the next claim may start the next attempt at once. The failed attempt still counts, and
// it is still known or unknown as before whether its effect happened.
SettleDecision cancel_retry_delay(const Run& run, Instant now) {
  const auto& queued = std::get<Queued>(run.state);
  if (queued.due_at <= now) return {};
  if (LK_SEEDED(retry_release_adds_attempt)) return {requeue_released(run, now), {}};
  return {with_state(run, Queued{now, queued.by}), {}};
}

struct End {
  const Run& run;
  Dice dice;
  Instant now;

  Run operator()(const Complete& complete) const { return with_state(run, Completed{now, complete.result}); }
  Run operator()(const Fail& fail) const { return fail_attempt(run, fail, dice, now); }
  Run operator()(const Release&) const { return requeue_released(run, now); }
  Run operator()(const Snooze& snooze) const { return requeue_released(run, add_capped(now, snooze.span)); }
};

// True if the same owner sent the same settle before and lost the reply. Nothing changes; the reply is the same.
bool is_repeat(const Run& run, const Ending& ending) {
  if (run.as<Completed>()) return std::holds_alternative<Complete>(ending);
  if (run.as<Failed>()) return std::holds_alternative<Fail>(ending);
  if (run.as<Cancelled>()) return !std::holds_alternative<Complete>(ending);
  if (run.as<InDoubt>()) {
    const auto* fail = std::get_if<Fail>(&ending);
    return fail && fail->outcome_unknown && run.head->on_doubt == OnDoubt::hold &&
           truncate_error(fail->message) == run.last_error && fail->code == run.last_error_code;
  }
  const auto* queued = run.as<Queued>();
  if (!queued) return false;
  if (queued->by == QueuedBy::failed_attempt || queued->by == QueuedBy::doubtful_attempt)
    return std::holds_alternative<Fail>(ending);
  if (queued->by == QueuedBy::release)
    return std::holds_alternative<Release>(ending) || std::holds_alternative<Snooze>(ending);
  return false;
}

}  // namespace

SettleDecision decide_settle(const Run& run, const SettleRequest& request, Dice dice, Instant now) {
  const bool stale = request.fence != run.fence && !(LK_SEEDED(settle_ignores_fence) && run.as<Running>());
  if (stale || request.fence == Fence{0}) return {{}, Error{Code::LEASE_LOST, "another owner has had the run since"}};
  if (is_repeat(run, request.ending)) return {};
  if (is_awaiting_retry(run) && std::holds_alternative<Release>(request.ending)) return cancel_retry_delay(run, now);
  if (run.is_settled()) return {{}, Error{Code::ALREADY_SETTLED, "the run is " + std::string(to_string(run.status()))}};
  if (run.as<Queued>() && !LK_SEEDED(settle_after_requeue))
    return {{}, Error{Code::LEASE_LOST, "the run was queued again"}};
  const auto* running = run.as<Running>();
  const bool cancelling = running && running->cancel_requested && !std::holds_alternative<Complete>(request.ending);
  if (cancelling && !LK_SEEDED(settle_ignores_cancel)) {
    const auto* failing = std::get_if<Fail>(&request.ending);
    const Effect effect = failing && failing->outcome_unknown ? Effect::unknown : Effect::none;
    return {with_state(run, Cancelled{now, std::string(kCancelled), effect}), {}};
  }
  return {std::visit(End{run, dice, now}, request.ending), {}};
}

}  // namespace latchkey
