#include "base/assert.hpp"
#include "base/seeded_bug.hpp"
#include "model/decide.hpp"
#include "model/endings.hpp"

namespace latchkey {
namespace {

// Retry-After for a queued job. It is not known when a worker will take the job.
constexpr Duration kPollAgain = std::chrono::seconds{1};

Run owned(const Run& run, const ClaimRequest& request, Fence fence, Instant now) {
  LK_ASSERT(fence > run.fence);
  Run next = run;
  if (!LK_SEEDED(attempts_counted_at_failure) || next.attempt == 0) next.attempt += 1;
  next.attempts_total += 1;
  next.fence = fence;
  if (next.attempt == 1) next.first_attempt_at = now;
  next.state = Running{.started_at = now,
                       .lease_until = add_capped(now, request.lease),
                       .claim = request.claim,
                       .session = {},
                       .lease = request.lease};
  return next;
}

bool is_free(const Run& run, Instant now) {
  if (run.as<Cancelled>()) return true;
  if (run.is_open() || run.head->by_call) return false;
  if (run.head->guard != Guard::once) return true;
  return run.as<Completed>() != nullptr && !run.in_window(now);
}

bool is_mismatch(const Run& run, const std::optional<Fingerprint>& fingerprint) {
  return run.head->guard == Guard::once && run.head->fingerprint && fingerprint &&
         *run.head->fingerprint != *fingerprint;
}

// True if the effect may have happened, and the run or this request has `on_doubt: hold`.
bool needs_operator(const Run& run, OnDoubt asked) {
  const auto* failed = run.as<Failed>();
  const bool hold = run.head->on_doubt == OnDoubt::hold || asked == OnDoubt::hold;
  return run.as<InDoubt>() || (failed && failed->effect == Effect::unknown && hold);
}

// A run that Latchkey itself created is unique by origin in every state: only an operator opens it again.
std::optional<Refuse> refuse_internal_run(const Run& run) {
  if (run.head->made_by != MadeBy::latchkey || run.is_open()) return std::nullopt;
  if (run.as<Completed>()) return Refuse{Replay{run}, {}};
  return Refuse{Busy{run, Code::MOVE_REFUSED, {}}, {}};
}

ClaimDecision claim_running(const Run& run, const Running& running, const ClaimRequest& request, Fence fence,
                            Instant now) {
  // The last owner could still settle the run, but the first new claim becomes the owner.
  if (now >= running.lease_until) return StartAgain{owned(run, request, fence, now), {}};
  const bool own = !request.claim.is_nil() && running.claim == request.claim && !LK_SEEDED(claim_id_forgotten);
  if (own) return Refuse{Won{run, run.fence, running.lease_until, true}, {}};
  return Refuse{Busy{run, Code::ALREADY_RUNNING, running.lease_until - now}, {}};
}

}  // namespace

Run start_claimed(std::shared_ptr<const RunHead> head, const ClaimRequest& request, Fence fence, Instant now) {
  Run run;
  run.effect_key = head->id;
  run.attempts_max = head->retry.retries + 1;
  run.head = std::move(head);
  return owned(run, request, fence, now);
}

ClaimDecision decide_claim(const std::optional<Run>& latest, const ClaimRequest& request, Fence fence, Instant now) {
  if (!latest) return StartNew{{}};
  // Deadlines are applied first, so that the reply does not depend on whether a sweep has run.
  const std::optional<Run> ended = decide_deadline(*latest, now);
  const Run& run = ended ? *ended : *latest;
  if (auto refused = refuse_internal_run(run)) return *std::move(refused);
  if (is_free(run, now)) return StartNew{ended};
  const bool looks = !LK_SEEDED(fingerprint_after_state) || run.as<Completed>();
  if (looks && is_mismatch(run, request.fingerprint)) return Refuse{Mismatch{run.id()}, {}};
  if (needs_operator(run, request.on_doubt)) return Refuse{InDoubtReply{run}, ended};
  if (run.as<Completed>()) return Refuse{Replay{run}, {}};
  if (run.as<Failed>()) {
    const Run reopened = reopen(run, Origin::claimed, request.retry.retries, now);
    return StartAgain{owned(reopened, request, fence, now), ended};
  }
  if (const auto* queued = run.as<Queued>()) {
    if (run.origin == Origin::enqueued) return Refuse{Busy{run, Code::ALREADY_QUEUED, kPollAgain}, ended};
    if (now < queued->due_at) return Refuse{NotDue{run, queued->due_at - now}, {}};
    return StartAgain{owned(run, request, fence, now), {}};
  }
  return claim_running(run, std::get<Running>(run.state), request, fence, now);
}

EnqueueDecision decide_enqueue(const std::optional<Run>& latest, const EnqueueRequest& request, Instant now) {
  if (!latest) return EnqueueNew{};
  const Run& run = *latest;
  const bool own = !request.claim.is_nil() && (run.head->claim == request.claim || run.opened_by == request.claim);
  if (own || request.made_by == MadeBy::latchkey) return UseExisting{Enqueued{run, !own}};
  const bool latchkeys = run.head->made_by == MadeBy::latchkey;
  if (is_free(run, now) && !latchkeys) return EnqueueNew{};
  if (is_mismatch(run, request.fingerprint)) return UseExisting{Mismatch{run.id()}};
  if (run.as<Failed>() && !latchkeys && !needs_operator(run, request.on_doubt)) {
    Run next = reopen(run, Origin::enqueued, request.retry.retries, now);
    next.state = Queued{add_capped(now, request.delay), QueuedBy::reopen};
    next.opened_by = request.claim;
    return Reopen{std::move(next)};
  }
  return UseExisting{Enqueued{run, true}};
}

Run start_queued(std::shared_ptr<const RunHead> head, Instant due_at, std::uint32_t waiting_for) {
  Run run;
  run.effect_key = head->id;
  run.attempts_max = head->retry.retries + 1;
  run.waiting_for = waiting_for;
  run.origin = Origin::enqueued;
  run.head = std::move(head);
  run.state = Queued{due_at, QueuedBy::enqueue};
  return run;
}

}  // namespace latchkey
