#include "model/decide.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

MoveDecision refused(const Run& run, const char* wish) {
  return {{},
          Error{Code::MOVE_REFUSED,
                std::string("a run that is ") + std::string(to_string(run.status())) + " cannot be " + wish}};
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
    // Latchkey's own runs hold their key when they are cancelled too: nobody else can open them.
    const bool may = run.as<Failed>() || (run.as<Cancelled>() && run.head->made_by == MadeBy::latchkey);
    if (!may) return refused(run, "retried");
    Run next = reopen(run, run.origin, run.head->retry.retries, now);
    if (retry.fresh_effect_key) next.effect_key = fresh_effect_key;
    return {std::move(next), {}};
  }

  MoveDecision operator()(const ResolveCompleted& resolve) const {
    if (run.as<Completed>()) return {};
    // What failed may have been done by hand since, or have had its effect after all.
    if (!run.as<InDoubt>() && !run.as<Failed>()) return refused(run, "resolved");
    return {with_state(run, Completed{now, resolve.result}), {}};
  }

  MoveDecision operator()(const ResolveFailed& resolve) const {
    if (run.as<Failed>()) return {};
    if (!run.as<InDoubt>()) return refused(run, "resolved");
    Run next = give_up(run, kExecutionError, Effect::none, now);
    if (!resolve.note.empty()) next.last_error = keep_error(resolve.note);
    return {std::move(next), {}};
  }

  MoveDecision operator()(const ResolveRerun&) const {
    if (was_reopened(run)) return {};
    if (!run.as<InDoubt>()) return refused(run, "rerun");
    Run next = with_state(run, Queued{now, QueuedBy::reopen});
    // A person asked for it: it may run even if its tries were used up.
    next.attempts_max = std::max(next.attempts_max, next.attempt + 1);
    return {std::move(next), {}};
  }

 private:
  // Opened again, and no try has started since: a fresh effect key still reaches every one of them. Once only: the same
  // wish again finds a key that is younger than the opening.
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
