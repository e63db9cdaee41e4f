// run_once: claim → effect → settle. Makes one effect happen once under a key, or answers from its outcome.
//
// Guarantees:
// - A claim whose reply was lost is asked again under its own claim id until it is answered; so is a settle. The next
//   try of a run has a new claim id: one fence never starts two efforts.
// - The effect runs only while the lease is known to be good. The lease is measured on the monotonic clock from the
//   moment the request was *sent*, so it never ends later here than at the store. When no heartbeat was answered for a
//   whole lease, or the store says LEASE_LOST, the effect is stopped.
// - What the effect answered is what is settled; an exception from it counts as an unknown outcome.
// It does not undo an effect, and cannot stop one that ignores stop().
//
// If the caller dies, the lease ends and the run's `on_doubt` decides. If the calling coroutine is cancelled nothing is
// settled. Errors of the store end the call only before the effect ran (settings.patience); afterwards they are
// retried. Runs on the calling coroutine's executor; needs one thread (an io_context's, or a strand).
#pragma once

#include <functional>
#include <variant>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/task.hpp"
#include "store/store.hpp"

namespace latchkey {

// What an effect says when it has ended.
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
// Stopped before it had any effect, or by its user: the try is given back.
struct EffectInterrupted {};
using EffectResult = std::variant<EffectDone, EffectFailed, EffectInterrupted>;

enum class StopReason : std::uint8_t { lease_lost, cancel_requested };

// The thing to be done.
class SideEffect {
 public:
  virtual ~SideEffect() = default;
  // Called once per try that was won.
  virtual Task<EffectResult> run(const Won& won) = 0;
  // Asks a running effect to end soon; run() then returns what it knows. Called at most once per try, on the same
  // thread.
  virtual void stop(StopReason reason) = 0;
};

struct RunOnceSettings {
  // Busy or not due: ask again until it is settled, instead of answering so.
  bool wait = false;
  // How long to wait at most.
  Duration wait_max = Duration::max();
  // The longest pause between two looks while waiting.
  Duration poll_max = std::chrono::seconds{1};
  // After a failed try that may be tried again, wait until it is due and try again. Otherwise answer with the queued
  // run.
  bool retry = true;
  // How long a store that does not answer a claim is asked again.
  Duration patience = std::chrono::seconds{30};
  // Whether a claim that finds the disk full is asked again as well, or answered STORE_FULL at once.
  bool wait_for_room = true;
  // How long a settle is asked again.
  Duration settle_patience = std::chrono::hours{24};
};

// This call's effect ran, and this is the run as it was settled: completed, failed, cancelled, or queued again.
struct Ran {
  Run run;
  std::optional<Uuid> dead_letter;
};
// This call's effect ran or was stopped, but the run is somebody else's now. What it did may be done again.
struct LostLease {
  RunId run;
};
// Replay: it was done before. Busy, NotDue, InDoubtReply, Mismatch: as the claim was refused.
using RunOnceReply = std::variant<Ran, LostLease, Replay, Busy, NotDue, InDoubtReply, Mismatch>;

// `request.claim` names the first try's claim; nil: one is drawn.
Task<Result<RunOnceReply>> run_once(ClaimStore& claims, Clock& clock, Random& random, ClaimRequest request,
                                    SideEffect& effect, RunOnceSettings settings);

}  // namespace latchkey
