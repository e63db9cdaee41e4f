// How a try ends: pieces that several decisions share. All pure.
#pragma once

#include <algorithm>

#include "model/run.hpp"

namespace latchkey {

// Dead-letter codes.
inline constexpr std::string_view kRetriesExceeded = "MAX_RETRIES_EXCEEDED";
inline constexpr std::string_view kExecutionError = "EXECUTION_ERROR";
inline constexpr std::string_view kOutcomeUnknown = "OUTCOME_UNKNOWN";
inline constexpr std::string_view kPredecessorFailed = "PREDECESSOR_FAILED";
inline constexpr std::string_view kCancelled = "CANCELLED";

// No instant that is stored lies after this (9999-12-31), so that sums of stored instants and spans cannot overflow.
inline constexpr Instant kFarthest{Duration{253'402'300'799'999}};
constexpr Instant add_capped(Instant at, Duration span) {
  return span >= kFarthest - at ? kFarthest : at + std::max(span, Duration{0});
}

// What is kept of what somebody said of a failure: all of it, or its first 64 KiB, whole characters, with a last line
// that says how much is missing. A run is read and written often, and one that says much must not hold up the others.
inline constexpr std::size_t kErrorBytesMax = 64 * 1024;
std::string keep_error(std::string_view message);

Run with_state(const Run& run, State state);
// Failed for good: the store writes its dead letter in the same transaction.
Run give_up(const Run& run, std::string_view code, Effect effect, Instant now);
// A queued run that nobody came for in time, or whose time for retries is over.
Run give_up_queued(const Run& run, Instant now);
// What a running run becomes when its lease is over: cancelled, in doubt, queued for another try, or failed.
Run end_lease(const Run& run, Instant now);
// A run opened again: a new generation, queued and due now. Attempts start from 0, the fence goes on. `retries` is what
// whoever opens it allows; delays, `total`, window and on_doubt stay those that the run was made with.
Run reopen(const Run& run, Origin origin, std::uint32_t retries, Instant now);
// The last try's owner was not heard of, or did not know what it had done.
inline bool is_doubtful(const Queued& queued) {
  return queued.by == QueuedBy::doubtful_try || queued.by == QueuedBy::lease_end;
}
// Whether another try may start at `at`.
bool may_try_again(const Run& run, Instant at);

}  // namespace latchkey
