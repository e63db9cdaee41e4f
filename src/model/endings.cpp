#include "model/endings.hpp"

#include "base/seeded_bug.hpp"
#include "model/decide.hpp"

namespace latchkey {
namespace {

// A dead letter always says why.
constexpr std::string_view kSilenceReason = "the lease ended and nobody said what happened";
constexpr std::string_view kPredecessorReason = "a run that this one waits for did not complete";
constexpr std::string_view kGivenBackReason = "its last try was given back, and nobody came for it within 24 h";
constexpr std::string_view kReopenedReason = "it was opened again, and nobody came for it within 24 h";
constexpr std::string_view kNotTriedAgainReason = "its last try failed, and it was not tried again in time";
static_assert(kCallerPatience == std::chrono::hours{24}, "the reasons say so");

// What the letter of a run that was waiting to be tried says; empty: what its last try said is the reason.
std::string_view reason_of(QueuedBy by) {
  if (by == QueuedBy::release) return kGivenBackReason;
  return by == QueuedBy::reopen ? kReopenedReason : std::string_view{};
}

// What is set aside of kErrorBytesMax for the line that says how much is missing, however much that is.
constexpr std::size_t kLastLineBytes = 64;
// After its first byte, in UTF-8.
constexpr std::size_t kCharacterBytesMore = 3;
bool goes_on_a_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string keep_error(std::string_view message) {
  if (message.size() <= kErrorBytesMax) return std::string(message);
  std::size_t cut = kErrorBytesMax - kLastLineBytes;
  for (std::size_t back = 0; back <= kCharacterBytesMore; ++back)
    if (!goes_on_a_character(message[cut - back])) {
      cut -= back;
      break;
    }
  return std::string(message.substr(0, cut)) + "\n… (" + std::to_string(message.size() - cut) +
         " bytes more were not kept)";
}

Run with_state(const Run& run, State state) {
  Run next = run;
  next.state = std::move(state);
  return next;
}

Run give_up(const Run& run, std::string_view code, Effect effect, Instant now) {
  Run next = with_state(run, Failed{now, std::string(code), effect});
  if (next.last_error.empty()) next.last_error = code == kPredecessorFailed ? kPredecessorReason : kSilenceReason;
  return next;
}

Run give_up_queued(const Run& run, Instant now) {
  const auto& queued = std::get<Queued>(run.state);
  if (is_doubtful(queued)) return give_up(run, kOutcomeUnknown, Effect::unknown, now);
  Run next = give_up(run, kRetriesExceeded, Effect::none, now);
  if (run.last_error.empty()) next.last_error = kNotTriedAgainReason;
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
  if (may_try_again(run, now)) return with_state(run, Queued{now, QueuedBy::lease_end});
  return give_up(run, kOutcomeUnknown, Effect::unknown, now);
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
  next.waiting_for = 0;  // what it waited for has ended, or is not waited for any more
  if (LK_SEEDED(generation_lowers_fence)) next.fence = Fence{0};
  return next;
}

bool may_try_again(const Run& run, Instant at) {
  if (run.attempt >= run.attempts_max) return false;
  return run.head->retry.total == Duration::max() || at - run.first_attempt_at <= run.head->retry.total;
}

}  // namespace latchkey
