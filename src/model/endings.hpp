// The ends of attempts and of generations: functions that several decisions share. All are pure.
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

// No stored instant is later than this (9999-12-31), so that sums of stored instants and spans cannot overflow.
inline constexpr Instant kFarthest{Duration{253'402'300'799'999}};
constexpr Instant add_capped(Instant at, Duration span) {
  return span >= kFarthest - at ? kFarthest : at + std::max(span, Duration{0});
}

// A stored error message has at most 64 KiB, because a run is read and written often. A longer message is cut between
// two characters, and a last line says how many bytes are missing.
inline constexpr std::size_t kErrorBytesMax = 64 * 1024;
std::string truncate_error(std::string_view message);

Run with_state(const Run& run, State state);
// Permanent failure of a run. The store writes the dead letter in the same transaction.
Run end_as_failed(const Run& run, std::string_view code, Effect effect, Instant now);
// Permanent failure of a queued run that was not claimed in time, or whose time for retries is over.
Run end_queued_as_failed(const Run& run, Instant now);
// A running run after its lease has expired: cancelled, in doubt, queued for another attempt, or failed.
Run end_lease(const Run& run, Instant now);
// Opens a run again: a new generation, queued and due now. Attempts start from 0; the fence does not change. `retries`
// comes from the request that opens the run; delays, `total`, window and on_doubt stay those of the first request.
Run reopen(const Run& run, Origin origin, std::uint32_t retries, Instant now);
// True if the last attempt may have had its effect: its lease expired, or its owner reported an unknown outcome.
inline bool is_doubtful(const Queued& queued) {
  return queued.by == QueuedBy::doubtful_attempt || queued.by == QueuedBy::lease_end;
}
// True if the retry policy allows another attempt to start at `at`.
bool is_attempt_allowed(const Run& run, Instant at);

}  // namespace latchkey
