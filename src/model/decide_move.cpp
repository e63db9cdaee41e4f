#include "model/decide.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

MoveDecision refused(const Run& run, const char* action) {
  return {{},
          Error{Code::MOVE_REFUSED,
                std::string("a run that is ") + std::string(to_string(run.status())) + " cannot be " + action}};
}

bool was_reopened(const Run& run) {
  const auto* queued = run.as<Queued>();
  return queued && queued->by == QueuedBy::reopen;
}

struct Decide {
  const Run& run;
  Uuid fresh_effect_key;
  Instant now;

  MoveDecision operator()(const CancelByHand&) const {
    const auto cancelled = [&](Effect effect) {
      return MoveDecision{with_state(run, Cancelled{now, std::string(kCancelled), effect}), {}};
    };
    switch (run.status()) {
      case Status::queued:
        return cancelled(is_doubtful(*run.as<Queued>()) ? Effect::unknown : Effect::none);
      case Status::in_doubt:
        return cancelled(Effect::unknown);
      case Status::failed:
        return cancelled(run.as<Failed>()->effect);
      case Status::cancelled:
        return {};
      case Status::completed:
        return refused(run, "cancelled");
      case Status::running:
        break;
    }
    Running asked = *run.as<Running>();
    if (now >= asked.lease_until) return cancelled(Effect::unknown);
    if (asked.cancel_requested) return {};
    asked.cancel_requested = true;
    return {with_state(run, asked), {}};
  }

  MoveDecision operator()(const RetryByHand& retry) const {
    if (was_reopened(run)) return retry.fresh_effect_key ? freshen() : MoveDecision{};
    // A cancelled run that Latchkey itself created still occupies its key: only an operator can open it again.
    const bool may = run.as<Failed>() || (run.as<Cancelled>() && run.head->made_by == MadeBy::latchkey);
    if (!may) return refused(run, "retried");
    Run next = reopen(run, run.origin, run.head->retry.retries, now);
    if (retry.fresh_effect_key) next.effect_key = fresh_effect_key;
    return {std::move(next), {}};
  }

  MoveDecision operator()(const ResolveCompleted& resolve) const {
    if (run.as<Completed>()) return {};
    // An operator may have done the work of a failed run, or the effect may have happened after all.
    if (!run.as<InDoubt>() && !run.as<Failed>()) return refused(run, "resolved");
    return {with_state(run, Completed{now, resolve.result}), {}};
  }

  MoveDecision operator()(const ResolveFailed& resolve) const {
    if (run.as<Failed>()) return {};
    if (!run.as<InDoubt>()) return refused(run, "resolved");
    Run next = end_as_failed(run, kExecutionError, Effect::none, now);
    if (!resolve.note.empty()) next.last_error = truncate_error(resolve.note);
    return {std::move(next), {}};
  }

  MoveDecision operator()(const ResolveRerun&) const {
    if (was_reopened(run)) return {};
    if (!run.as<InDoubt>()) return refused(run, "rerun");
    Run next = with_state(run, Queued{now, QueuedBy::reopen});
    // An operator asked for it: the run gets one more attempt even if its attempts are used up.
    next.attempts_max = std::max(next.attempts_max, next.attempt + 1);
    return {std::move(next), {}};
  }

 private:
  // The run was opened again and no attempt has started: a new effect key applies to every attempt of the generation.
  // A repeated request finds a key that is newer than the opening, and changes nothing.
  MoveDecision freshen() const {
    if (run.effect_key != run.id() && uuid_time(run.effect_key) >= run.as<Queued>()->due_at) return {};
    Run next = run;
    next.effect_key = fresh_effect_key;
    return {std::move(next), {}};
  }
};

}  // namespace

MoveDecision decide_move(const Run& run, const Move& move, Uuid fresh_effect_key, Instant now) {
  return std::visit(Decide{run, fresh_effect_key, now}, move);
}

}  // namespace latchkey
