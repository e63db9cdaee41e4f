#include "model/endings.hpp"

#include "base/seeded_bug.hpp"
#include "model/decide.hpp"

namespace latchkey {
namespace {

// Every dead letter has a reason.
constexpr std::string_view kLeaseExpiredReason = "the lease expired without a result";
constexpr std::string_view kPredecessorReason = "a predecessor of the run did not complete";
constexpr std::string_view kReleasedReason =
    "the last attempt was released, and the run was not claimed again within 24 h";
constexpr std::string_view kReopenedReason = "the run was opened again, and was not claimed within 24 h";
constexpr std::string_view kNotRetriedReason = "the last attempt failed, and no further attempt started in time";
static_assert(kNextClaimTimeout == std::chrono::hours{24}, "the reasons contain this number");

// The reason in the dead letter of a queued run. Empty: the error of its last attempt is the reason.
std::string_view reason_of(QueuedBy by) {
  if (by == QueuedBy::release) return kReleasedReason;
  return by == QueuedBy::reopen ? kReopenedReason : std::string_view{};
}

// The part of kErrorBytesMax that is reserved for the last line; enough for a count of any length.
constexpr std::size_t kLastLineBytes = 64;
// A UTF-8 character has at most three bytes after its first one.
constexpr std::size_t kContinuationBytesMax = 3;
bool is_continuation_byte(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string truncate_error(std::string_view message) {
  if (message.size() <= kErrorBytesMax) return std::string(message);
  std::size_t cut = kErrorBytesMax - kLastLineBytes;
  for (std::size_t back = 0; back <= kContinuationBytesMax; ++back)
    if (!is_continuation_byte(message[cut - back])) {
      cut -= back;
      break;
    }
  return std::string(message.substr(0, cut)) + "\n… (" + std::to_string(message.size() - cut) +
         " more bytes were not stored)";
}

Run with_state(const Run& run, State state) {
  Run next = run;
  next.state = std::move(state);
  return next;
}

Run end_as_failed(const Run& run, std::string_view code, Effect effect, Instant now) {
  Run next = with_state(run, Failed{now, std::string(code), effect});
  if (next.last_error.empty()) next.last_error = code == kPredecessorFailed ? kPredecessorReason : kLeaseExpiredReason;
  return next;
}

Run end_queued_as_failed(const Run& run, Instant now) {
  const auto& queued = std::get<Queued>(run.state);
  if (is_doubtful(queued)) return end_as_failed(run, kOutcomeUnknown, Effect::unknown, now);
  Run next = end_as_failed(run, kRetriesExceeded, Effect::none, now);
  if (run.last_error.empty()) next.last_error = kNotRetriedReason;
  if (const auto reason = reason_of(queued.by); !reason.empty()) {
    next.last_error = reason;
    next.last_error_code.clear();
  }
  return next;
}

Run end_lease(const Run& run, Instant now) {
  const auto& running = std::get<Running>(run.state);
  if (running.cancel_requested) return with_state(run, Cancelled{now, std::string(kCancelled), Effect::unknown});
  if (run.head->on_doubt == OnDoubt::hold && !LK_SEEDED(hold_reruns_after_lease)) return with_state(run, InDoubt{now});
  if (is_attempt_allowed(run, now)) return with_state(run, Queued{now, QueuedBy::lease_end});
  return end_as_failed(run, kOutcomeUnknown, Effect::unknown, now);
}

Run reopen(const Run& run, Origin origin, std::uint32_t retries, Instant now) {
  Run next = with_state(run, Queued{now, QueuedBy::reopen});
  next.origin = origin;
  next.generation += 1;
  next.opened_by = {};
  next.attempt = 0;
  next.attempts_max = (LK_SEEDED(reopening_ignores_retries) ? run.head->retry.retries : retries) + 1;
  next.failures = 0;
  next.first_attempt_at = {};
  next.waiting_for = 0;  // an operator or a new request opens the run: it no longer waits for predecessors
  if (LK_SEEDED(generation_lowers_fence)) next.fence = Fence{0};
  return next;
}

bool is_attempt_allowed(const Run& run, Instant at) {
  if (run.attempt >= run.attempts_max) return false;
  return run.head->retry.total == Duration::max() || at - run.first_attempt_at <= run.head->retry.total;
}

}  // namespace latchkey
