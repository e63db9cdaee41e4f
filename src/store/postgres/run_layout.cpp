#include "store/postgres/run_layout.hpp"

#include "model/decide.hpp"

namespace latchkey::pg {
namespace {

// An enqueued run with no history beyond its first attempt.
bool is_plain(const Run& run) {
  return run.origin == Origin::enqueued && run.generation == 1 && run.attempts_max == run.head->retry.retries + 1 &&
         run.failures == 0 && run.waiting_for == 0 && run.last_error.empty() && run.last_error_code.empty() &&
         run.opened_by.is_nil() && run.effect_key == run.id();
}

bool is_at_first_attempt(const Run& run) { return is_plain(run) && run.attempt == 1 && run.attempts_total == 1; }

Run make_plain(std::shared_ptr<const RunHead> head) {
  Run run;
  run.origin = Origin::enqueued;
  run.attempts_max = head->retry.retries + 1;
  run.effect_key = head->id;
  run.head = std::move(head);
  return run;
}

}  // namespace

bool Block::is_like(const Block& other) const {
  return tenant == other.tenant && function == other.function && priority == other.priority && due_at == other.due_at &&
         owner == other.owner;
}

Run run_of(std::shared_ptr<const RunHead> head, const Block& block) {
  Run run = make_plain(std::move(head));
  if (!block.owner) {
    run.state = Queued{block.due_at, QueuedBy::enqueue};
    return run;
  }
  const BlockOwner& owner = *block.owner;
  run.attempt = run.attempts_total = 1;
  run.fence = static_cast<Fence>(owner.fence_from + seq_in(run.id()));
  run.first_attempt_at = owner.started_at;
  run.state = Running{.started_at = owner.started_at,
                      .lease_until = owner.lease_until,
                      .claim = {},
                      .session = owner.session,
                      .lease = owner.lease,
                      .cancel_requested = false};
  return run;
}

Run run_of(std::shared_ptr<const RunHead> head, const PlainOutcome& outcome) {
  Run run = make_plain(std::move(head));
  run.attempt = run.attempts_total = 1;
  run.fence = outcome.fence;
  run.first_attempt_at = outcome.started_at;
  run.state = Completed{outcome.at, outcome.result};
  return run;
}

std::optional<Block> block_of(const Run& run) {
  const Seq seq = seq_in(run.id());
  Block block{.lo = seq,
              .hi = seq,
              .tenant = run.head->tenant,
              .function = run.head->function,
              .priority = run.head->priority,
              .due_at = {},
              .owner = {}};
  if (const auto* queued = run.as<Queued>()) {
    const bool is_fresh = is_plain(run) && queued->by == QueuedBy::enqueue && run.attempt == 0 &&
                          run.attempts_total == 0 && run.fence == Fence{0} && run.first_attempt_at == Instant{} &&
                          !next_deadline(run);
    if (!is_fresh) return std::nullopt;
    block.due_at = queued->due_at;
    return block;
  }
  const auto* running = run.as<Running>();
  if (!running || !is_at_first_attempt(run) || running->session.is_nil() || !running->claim.is_nil() ||
      running->cancel_requested || run.first_attempt_at != running->started_at ||
      next_deadline(run) != running->lease_until)
    return std::nullopt;
  block.due_at = running->started_at;
  block.owner = BlockOwner{.fence_from = static_cast<std::int64_t>(run.fence) - seq,
                           .started_at = running->started_at,
                           .lease_until = running->lease_until,
                           .lease = running->lease,
                           .session = running->session};
  return block;
}

bool is_plain_outcome(const Run& run) { return run.as<Completed>() && is_at_first_attempt(run); }

}  // namespace latchkey::pg
