#include "support/sample_runs.hpp"

#include <array>

namespace latchkey {

using namespace std::chrono_literals;

Digest hash_key(std::string_view tenant, std::string_view function, std::string_view key) {
  return thread_sha256().add_prefixed(tenant).add_prefixed(function).add_prefixed(key).finish();
}

Uuid id_of(std::uint64_t number) { return make_uuid_v7(kNoon - 1h, number, number); }

namespace {

void name_key(auto& request, std::string key, std::string tenant) {
  request.tenant = std::move(tenant);
  request.function = "f";
  request.key = std::move(key);
  request.key_hash = hash_key(request.tenant, request.function, request.key);
  request.guard = Guard::once;
  request.fingerprint = kSame;
  request.caller = "tester";
}

Running lease_until(Instant until) { return Running{.started_at = kNoon - 10min, .lease_until = until}; }

}  // namespace

ClaimRequest a_claim(std::string key, std::string tenant) {
  ClaimRequest request;
  name_key(request, std::move(key), std::move(tenant));
  return request;
}

EnqueueRequest a_job(std::string key, std::string tenant) {
  EnqueueRequest request;
  name_key(request, std::move(key), std::move(tenant));
  return request;
}

RunHead a_head() {
  RunHead head;
  head.id = id_of(1);
  head.tenant = "default";
  head.function = "f";
  head.key = "k";
  head.key_hash = hash_key("default", "f", "k");
  head.guard = Guard::once;
  head.fingerprint = kSame;
  head.created_at = kNoon - 1h;
  return head;
}

Run a_run(State state, RunHead head) {
  Run run;
  run.effect_key = head.id;
  run.attempts_max = head.retry.retries + 1;
  run.attempt = 1;
  run.attempts_total = 1;
  run.fence = kOldFence;
  run.first_attempt_at = kNoon - 10min;
  run.head = std::make_shared<RunHead>(std::move(head));
  run.state = std::move(state);
  return run;
}

Run a_job_run(State state, RunHead head) {
  Run run = a_run(std::move(state), std::move(head));
  run.origin = Origin::enqueued;
  return run;
}

bool is_lock(KeyState state) {
  return state == KeyState::while_running_completed || state == KeyState::while_running_failed;
}

std::optional<Run> make_run_in(KeyState state) {
  RunHead head = a_head();
  if (is_lock(state)) {
    head.guard = Guard::while_running;
    head.fingerprint.reset();
  }
  RunHead holding = head;
  holding.on_doubt = OnDoubt::hold;
  switch (state) {
    case KeyState::absent:
      return std::nullopt;
    case KeyState::cancelled:
      return a_run(Cancelled{kNoon - 1min, "CANCELLED"}, head);
    case KeyState::window_over:
      return a_run(Completed{kNoon - head.window, "result"}, head);
    case KeyState::while_running_completed:
    case KeyState::once_completed:
      return a_run(Completed{kNoon - 1min, "result"}, head);
    case KeyState::while_running_failed:
    case KeyState::once_failed:
      return a_run(Failed{kNoon - 1min, "EXECUTION_ERROR"}, head);
    case KeyState::queued_job: {
      Run run = a_job_run(Queued{kNoon - 1min}, head);
      run.attempt = run.attempts_total = 0;
      run.fence = Fence{0};
      return run;
    }
    case KeyState::queued_claim_due:
      return a_run(Queued{kNoon, QueuedBy::failed_attempt}, head);
    case KeyState::queued_claim_not_due:
      return a_run(Queued{kNoon + 1ms, QueuedBy::failed_attempt}, head);
    case KeyState::running:
      return a_run(lease_until(kNoon + 1ms), head);
    case KeyState::lapsed_claim_rerun:
      return a_run(lease_until(kNoon), head);
    case KeyState::lapsed_job_rerun:
      return a_job_run(lease_until(kNoon), head);
    case KeyState::lapsed_hold:
      return a_run(lease_until(kNoon), holding);
    case KeyState::in_doubt:
      return a_run(InDoubt{kNoon - 1min}, holding);
    case KeyState::failed_unknown_hold:
      return a_run(Failed{kNoon - 1min, "OUTCOME_UNKNOWN", Effect::unknown}, holding);
  }
  return std::nullopt;
}

std::string_view name(KeyState state) {
  static constexpr std::array<std::string_view, 16> kNames{"absent",
                                                           "cancelled",
                                                           "window_over",
                                                           "while_running_completed",
                                                           "while_running_failed",
                                                           "queued_job",
                                                           "queued_claim_due",
                                                           "queued_claim_not_due",
                                                           "running",
                                                           "lapsed_claim_rerun",
                                                           "lapsed_job_rerun",
                                                           "lapsed_hold",
                                                           "in_doubt",
                                                           "failed_unknown_hold",
                                                           "once_completed",
                                                           "once_failed"};
  static_assert(kNames.size() == kRepeatTable.size());
  return kNames.at(static_cast<std::size_t>(state));
}

namespace {

struct OnWire {
  WireAnswer operator()(const Won&) const { return {201, "", false}; }
  WireAnswer operator()(const Busy& busy) const {
    return {facts(busy.code).http_status, std::string(facts(busy.code).name), busy.retry_after > 0ms};
  }
  WireAnswer operator()(const NotDue& wait) const { return {409, "NOT_DUE", wait.retry_after > 0ms}; }
  WireAnswer operator()(const InDoubtReply&) const { return {409, "OUTCOME_UNKNOWN", false}; }
  WireAnswer operator()(const Replay&) const { return {200, "", false}; }
  WireAnswer operator()(const Mismatch&) const { return {422, "KEY_REUSED", false}; }
};

}  // namespace

WireAnswer on_wire(const ClaimReply& reply) { return std::visit(OnWire{}, reply); }

std::optional<ClaimAnswer> classify(const ClaimReply& reply, const std::optional<Run>& before) {
  if (const auto* won = std::get_if<Won>(&reply)) {
    if (!before || won->run.id() != before->id()) return ClaimAnswer::new_run;
    return won->run.generation > before->generation ? ClaimAnswer::new_generation : ClaimAnswer::same_run;
  }
  if (std::holds_alternative<Busy>(reply)) return ClaimAnswer::busy;
  if (std::holds_alternative<NotDue>(reply)) return ClaimAnswer::not_due;
  if (std::holds_alternative<InDoubtReply>(reply)) return ClaimAnswer::in_doubt;
  if (std::holds_alternative<Replay>(reply)) return ClaimAnswer::replay;
  return std::nullopt;
}

std::optional<EnqueueAnswer> classify(const EnqueueReply& reply, const std::optional<Run>& before) {
  const auto* enqueued = std::get_if<Enqueued>(&reply);
  if (!enqueued) return std::nullopt;
  if (enqueued->duplicate) return EnqueueAnswer::duplicate;
  if (!before || enqueued->run.id() != before->id()) return EnqueueAnswer::new_run;
  return EnqueueAnswer::new_generation;
}

bool same_run(const Run& a, const Run& b) {
  const auto members = [](const Run& run) {
    return std::tie(run.head->id, run.head->tenant, run.head->function, run.head->key, run.head->input, run.origin,
                    run.generation, run.attempt, run.attempts_max, run.failures, run.attempts_total, run.fence,
                    run.first_attempt_at, run.waiting_for, run.last_error, run.last_error_code, run.effect_key,
                    run.opened_by, run.state);
  };
  return members(a) == members(b);
}

}  // namespace latchkey
