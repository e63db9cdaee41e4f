#include "simulation/oracle.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace latchkey::sim {
namespace {

const RepeatRow& row_of(KeyState state) {
  const auto row = std::ranges::find(kRepeatTable, state, &RepeatRow::state);
  LK_ASSERT(row != kRepeatTable.end());
  return *row;
}

KeyState classify_lapsed(const Run& run, const Running& running, OnDoubt asked) {
  const bool once = run.head->guard == Guard::once;
  if (running.cancel_requested) return KeyState::cancelled;
  if (run.head->on_doubt == OnDoubt::hold) return KeyState::lapsed_hold;
  if (run.attempt >= run.attempts_max && once)
    return asked == OnDoubt::hold ? KeyState::failed_unknown_hold : KeyState::once_failed;
  if (run.attempt >= run.attempts_max) return KeyState::while_running_failed;
  return run.origin == Origin::claimed ? KeyState::lapsed_claim_rerun : KeyState::lapsed_job_rerun;
}

bool differs(const std::optional<Run>& latest, const std::optional<Fingerprint>& fingerprint) {
  return latest && latest->head->guard == Guard::once && latest->head->fingerprint && fingerprint &&
         *latest->head->fingerprint != *fingerprint;
}

std::string text_of(const RepeatRow& row, const char* what) {
  return std::string(what) + " where the key's run is: " + std::string(row.text);
}

bool is_won_as(const Won& won, const std::optional<Run>& latest, const ClaimRequest& request, ClaimAnswer answer) {
  switch (answer) {
    case ClaimAnswer::new_run:
      return (!latest || won.run.id() != latest->id()) && won.run.generation == 1 && won.run.attempt == 1;
    case ClaimAnswer::same_run:
      return latest && won.run.id() == latest->id() && won.run.generation == latest->generation &&
             won.run.attempt == latest->attempt + 1;
    case ClaimAnswer::new_generation:
      return latest && won.run.id() == latest->id() && won.run.generation == latest->generation + 1 &&
             won.run.attempt == 1 && won.run.attempts_max == request.retry.retries + 1;
    default:
      return false;
  }
}

bool is_answer(const ClaimReply& reply, const std::optional<Run>& latest, const ClaimRequest& request,
               const RepeatRow& row) {
  if (const auto* won = std::get_if<Won>(&reply)) return is_won_as(*won, latest, request, row.claim);
  if (const auto* busy = std::get_if<Busy>(&reply))
    return row.claim == ClaimAnswer::busy && facts(busy->code).name == row.code && busy->retry_after > Duration{0};
  if (const auto* not_due = std::get_if<NotDue>(&reply))
    return row.claim == ClaimAnswer::not_due && not_due->retry_after > Duration{0};
  if (std::holds_alternative<InDoubtReply>(reply)) return row.claim == ClaimAnswer::in_doubt;
  if (const auto* replay = std::get_if<Replay>(&reply))
    return row.claim == ClaimAnswer::replay && replay->run.id() == latest->id() && replay->run.state == latest->state;
  return false;
}

}  // namespace

KeyState classify(const std::optional<Run>& latest, OnDoubt asked, Instant now) {
  if (!latest) return KeyState::absent;
  const Run& run = *latest;
  const bool once = run.head->guard == Guard::once;
  if (run.as<Cancelled>()) return KeyState::cancelled;
  if (const auto* completed = run.as<Completed>()) {
    if (!once) return KeyState::while_running_completed;
    return now < completed->at + run.head->window ? KeyState::once_completed : KeyState::window_over;
  }
  if (const auto* failed = run.as<Failed>()) {
    if (!once) return KeyState::while_running_failed;
    const bool is_in_doubt =
        failed->effect == Effect::unknown && (run.head->on_doubt == OnDoubt::hold || asked == OnDoubt::hold);
    return is_in_doubt ? KeyState::failed_unknown_hold : KeyState::once_failed;
  }
  if (run.as<InDoubt>()) return KeyState::in_doubt;
  if (const auto* queued = run.as<Queued>()) {
    if (run.origin == Origin::enqueued) return KeyState::queued_job;
    return now < queued->due_at ? KeyState::queued_claim_not_due : KeyState::queued_claim_due;
  }
  const auto& running = std::get<Running>(run.state);
  return now < running.lease_until ? KeyState::running : classify_lapsed(run, running, asked);
}

std::string find_wrong(const std::optional<Run>& latest, const ClaimRequest& request, const ClaimReply& reply,
                       Instant now) {
  const RepeatRow& row = row_of(classify(latest, request.on_doubt, now));
  if (row.fingerprint_checked && differs(latest, request.fingerprint))
    return std::holds_alternative<Mismatch>(reply) ? "" : text_of(row, "another request did not get KEY_REUSED");
  if (row.state == KeyState::running && latest->as<Running>()->claim == request.claim) {
    const auto* won = std::get_if<Won>(&reply);
    return won && won->fence == latest->fence ? "" : text_of(row, "a repeated claim did not get its own run");
  }
  return is_answer(reply, latest, request, row) ? "" : text_of(row, "wrong reply to a claim");
}

std::string find_wrong(const std::optional<Run>& latest, const EnqueueRequest& request, const EnqueueReply& reply,
                       Instant now) {
  const RepeatRow& row = row_of(classify(latest, request.on_doubt, now));
  const auto* enqueued = std::get_if<Enqueued>(&reply);
  if (latest && (latest->head->claim == request.claim || latest->opened_by == request.claim))
    return enqueued && !enqueued->duplicate ? "" : text_of(row, "a repeated enqueue did not get its own run");
  if (row.fingerprint_checked && differs(latest, request.fingerprint))
    return std::holds_alternative<Mismatch>(reply) ? "" : text_of(row, "another job did not get KEY_REUSED");
  if (!enqueued) return std::holds_alternative<Error>(reply) ? "" : text_of(row, "KEY_REUSED for an equal job");
  const bool same = latest && enqueued->run.id() == latest->id();
  const bool good = row.enqueue == EnqueueAnswer::new_run ? !same && !enqueued->duplicate
                    : row.enqueue == EnqueueAnswer::duplicate
                        ? same && enqueued->duplicate
                        : same && !enqueued->duplicate && enqueued->run.generation == latest->generation + 1 &&
                              enqueued->run.attempts_max == request.retry.retries + 1;
  return good ? "" : text_of(row, "wrong reply to an enqueue");
}

}  // namespace latchkey::sim
