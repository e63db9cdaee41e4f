// run_once: claim → effect → settle. Runs an effect once under a key, or returns its stored outcome.
//
// Guarantees:
// - A claim whose reply was lost is sent again with its claim id until a reply arrives. A settle is repeated likewise.
//   The next attempt of a run has a new claim id, so that one fence never starts the effect twice.
// - The effect runs only while the lease is known to be valid. The lease is measured on the monotonic clock from the
//   time at which the request was *sent*, so it never ends later here than in the store. The effect is stopped when no
//   heartbeat got a reply for a whole lease, or when the store replies LEASE_LOST.
// - The run is settled with the result of the effect. An exception of the effect is an unknown outcome.
// It does not undo an effect, and cannot stop one that ignores stop().
//
// If the caller dies, the lease expires and the run's `on_doubt` decides. If the calling coroutine is cancelled,
// nothing is settled. Before the effect, errors of the store end the call after settings.patience; after the effect,
// the settle is retried for settings.settle_patience. Runs on the calling coroutine's executor, which must use one
// thread (or a strand).
#pragma once

#include <functional>
#include <variant>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/task.hpp"
#include "store/store.hpp"

namespace latchkey {

// The results of an effect.
struct EffectDone {
  Bytes result;
  std::vector<EnqueueRequest> follow_ups;
};
struct EffectFailed {
  std::string message;
  std::string code;
  bool retryable = true;
  bool outcome_unknown = false;
  std::optional<Duration> retry_after;
};
// The effect was stopped before it happened, or by its user: the attempt is released.
struct EffectInterrupted {};
using EffectResult = std::variant<EffectDone, EffectFailed, EffectInterrupted>;

enum class StopReason : std::uint8_t { lease_lost, cancel_requested };

// The action that must happen once.
class SideEffect {
 public:
  virtual ~SideEffect() = default;
  // Called once for each attempt that was won.
  virtual Task<EffectResult> run(const Won& won) = 0;
  // Asks a running effect to end soon; run() then returns the result so far. Called at most once per attempt, on the
  // same thread.
  virtual void stop(StopReason reason) = 0;
};

struct RunOnceSettings {
  // If the run is busy or not due: claim again until the run is settled, instead of returning that reply.
  bool wait = false;
  // The longest time to wait.
  Duration wait_max = Duration::max();
  // The longest pause between two claims while waiting.
  Duration poll_max = std::chrono::seconds{1};
  // After a failed attempt, wait for the retry delay and start the next attempt. Otherwise return the queued run.
  bool retry = true;
  // The same after an attempt whose effect may have happened, under `rerun`.
  bool retry_unknown = false;
  // The time for which a claim is repeated when the store fails.
  Duration patience = std::chrono::seconds{30};
  // If the disk is full, repeat the claim as well. Otherwise return STORE_FULL at once.
  bool wait_for_room = true;
  // The time for which a settle is repeated when the store fails.
  Duration settle_patience = std::chrono::hours{24};
};

// This call ran the effect. `run` is the run after the settle: completed, failed, cancelled, or queued again.
struct Ran {
  Run run;
  std::optional<Uuid> dead_letter;
};
// This call's effect ran or was stopped, but its outcome was not stored. LEASE_LOST: another owner may run the effect
// again. ALREADY_SETTLED: the run was ended without this outcome, by the end of its lease or by an operator.
struct LostLease {
  RunId run;
  Code reason = Code::LEASE_LOST;
  std::string detail;
};
// Replay: the run completed before. Busy, NotDue, InDoubtReply, Mismatch: the refusal of the claim.
using RunOnceReply = std::variant<Ran, LostLease, Replay, Busy, NotDue, InDoubtReply, Mismatch>;

// `request.claim` is the claim id of the first attempt; if it is nil, an id is drawn.
Task<Result<RunOnceReply>> run_once(ClaimStore& claims, Clock& clock, Random& random, ClaimRequest request,
                                    SideEffect& effect, RunOnceSettings settings);

}  // namespace latchkey
