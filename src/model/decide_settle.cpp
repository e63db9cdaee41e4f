#include "base/seeded_bug.hpp"
#include "model/decide.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

Run fail_try(const Run& run, const Fail& fail, Dice dice, Instant now) {
  Run noted = run;
  noted.last_error = keep_error(fail.message);
  noted.last_error_code = fail.code;
  if (LK_SEEDED(attempts_counted_at_failure)) noted.attempt += 1;
  const std::uint32_t failures = std::min(run.failures + 1, run.attempt);  // one in doubt may be told of twice
  if (fail.outcome_unknown && run.head->on_doubt == OnDoubt::hold) {
    noted.failures = failures;
    return with_state(noted, run.as<InDoubt>() ? *run.as<InDoubt>() : InDoubt{now});
  }
  const Effect effect = fail.outcome_unknown ? Effect::unknown : Effect::none;
  if (!fail.retryable && !fail.outcome_unknown) return give_up(noted, kExecutionError, effect, now);
  Duration delay = run.head->retry.delay_after(failures, dice);
  if (fail.retry_after) delay = std::max(delay, std::min(*fail.retry_after, kRetryAfterMax));
  const Instant due_at = add_capped(now, delay);
  if (!may_try_again(run, due_at))
    return give_up(noted, fail.outcome_unknown ? kOutcomeUnknown : kRetriesExceeded, effect, now);
  noted.failures = failures;
  return with_state(noted, Queued{due_at, fail.outcome_unknown ? QueuedBy::doubtful_try : QueuedBy::failed_try});
}

Run give_back(const Run& run, Instant due_at) {
  Run next = with_state(run, Queued{due_at, QueuedBy::release});
  if (LK_SEEDED(release_lowers_attempt)) {
    next.attempt -= 1;
    return next;
  }
  next.attempts_max += 1;
  return next;
}

// A try that failed, of a run that waits for its caller to come again.
bool is_between_tries(const Run& run) {
  const auto* queued = run.as<Queued>();
  return queued && run.origin == Origin::claimed &&
         (queued->by == QueuedBy::failed_try || queued->by == QueuedBy::doubtful_try);
}

// Its caller does not wait any longer: whoever asks next makes the next try, at once. The try that failed still counts,
// and stays as doubtful as it was.
SettleDecision wait_no_longer(const Run& run, Instant now) {
  const auto& queued = std::get<Queued>(run.state);
  if (queued.due_at <= now) return {};
  if (LK_SEEDED(wait_given_back_as_a_try)) return {give_back(run, now), {}};
  return {with_state(run, Queued{now, queued.by}), {}};
}

struct End {
  const Run& run;
  Dice dice;
  Instant now;

  Run operator()(const Complete& complete) const { return with_state(run, Completed{now, complete.result}); }
  Run operator()(const Fail& fail) const { return fail_try(run, fail, dice, now); }
  Run operator()(const Release&) const { return give_back(run, now); }
  Run operator()(const Snooze& snooze) const { return give_back(run, add_capped(now, snooze.span)); }
};

// The same settle again, by the same owner: its reply was lost. Nothing changes and the answer is the same.
bool is_repeat(const Run& run, const Ending& ending) {
  if (run.as<Completed>()) return std::holds_alternative<Complete>(ending);
  if (run.as<Failed>()) return std::holds_alternative<Fail>(ending);
  if (run.as<Cancelled>()) return !std::holds_alternative<Complete>(ending);
  if (run.as<InDoubt>()) {
    const auto* fail = std::get_if<Fail>(&ending);
    return fail && fail->outcome_unknown && run.head->on_doubt == OnDoubt::hold &&
           keep_error(fail->message) == run.last_error && fail->code == run.last_error_code;
  }
  const auto* queued = run.as<Queued>();
  if (!queued) return false;
  if (queued->by == QueuedBy::failed_try || queued->by == QueuedBy::doubtful_try)
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
  if (is_between_tries(run) && std::holds_alternative<Release>(request.ending)) return wait_no_longer(run, now);
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
