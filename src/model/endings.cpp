#include "model/endings.hpp"

#include "base/seeded_bug.hpp"

namespace latchkey {

Run with_state(const Run& run, State state) {
  Run next = run;
  next.state = std::move(state);
  return next;
}

Run give_up(const Run& run, std::string_view code, Effect effect, Instant now) {
  return with_state(run, Failed{now, std::string(code), effect});
}

Run end_lease(const Run& run, Instant now) {
  const auto& running = std::get<Running>(run.state);
  if (running.cancel_requested) return with_state(run, Cancelled{now, std::string(kCancelled), Effect::unknown});
  if (run.head->on_doubt == OnDoubt::hold && !LK_SEEDED(hold_reruns_after_lease)) return with_state(run, InDoubt{now});
  if (may_try_again(run, now)) return with_state(run, Queued{now, QueuedBy::lease_end});
  Run next = give_up(run, kOutcomeUnknown, Effect::unknown, now);
  if (next.last_error.empty()) next.last_error = "the lease ended and nobody said what happened";
  return next;
}

Run reopen(const Run& run, Origin origin, Instant now) {
  Run next = with_state(run, Queued{now, QueuedBy::reopen});
  next.origin = origin;
  next.generation += 1;
  next.attempt = 0;
  next.attempts_max = run.head->retry.retries + 1;
  next.first_attempt_at = {};
  // Whoever opens it wants it run: predecessors that had failed it are waited for no more.
  next.waiting_for = 0;
  if (LK_SEEDED(generation_lowers_fence)) next.fence = Fence{0};
  return next;
}

bool may_try_again(const Run& run, Instant at) {
  if (run.attempt >= run.attempts_max) return false;
  return run.head->retry.total == Duration::max() || at <= run.first_attempt_at + run.head->retry.total;
}

}  // namespace latchkey
