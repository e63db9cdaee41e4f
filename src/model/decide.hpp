// The state machine as pure functions: from a run and a request they compute the next state and the reply.
//
// They draw no random numbers and read no clock: fences, ids, dice and the current time are arguments. The store writes
// the next state and sends the reply.
#pragma once

#include <optional>
#include <variant>

#include "model/requests.hpp"
#include "model/run.hpp"

namespace latchkey {

// A claimed run whose attempt failed or whose lease expired waits this long for the next claim. Then it fails.
inline constexpr Duration kNextClaimTimeout = std::chrono::hours{24};
// A longer Retry-After is shortened to this.
inline constexpr Duration kRetryAfterMax = std::chrono::hours{24};

struct Retention {
  Duration done = std::chrono::hours{24 * 7};
  Duration failed = std::chrono::hours{24 * 30};
  bool operator==(const Retention&) const = default;
};

// --- by key -------------------------------------------------------------------------------------------------------

// The decision for a claim. `ended` is set if a deadline of the key's run has passed: the store writes it first.
struct StartNew {
  std::optional<Run> ended;
};
struct StartAgain {
  Run next;  // running, with the fence that was offered
  std::optional<Run> ended;
};
struct Refuse {
  ClaimReply reply;
  std::optional<Run> next;  // set when a deadline had passed and changed the run, for example to in doubt
};
using ClaimDecision = std::variant<StartNew, StartAgain, Refuse>;

// `latest` is the key's latest run, or none. `fence` is used only if the claim wins.
ClaimDecision decide_claim(const std::optional<Run>& latest, const ClaimRequest& request, Fence fence, Instant now);
// The first attempt of a new run.
Run start_claimed(std::shared_ptr<const RunHead> head, const ClaimRequest& request, Fence fence, Instant now);

struct EnqueueNew {};
struct Reopen {
  Run next;
};
struct UseExisting {
  EnqueueReply reply;
};
using EnqueueDecision = std::variant<EnqueueNew, Reopen, UseExisting>;

EnqueueDecision decide_enqueue(const std::optional<Run>& latest, const EnqueueRequest& request, Instant now);
Run start_queued(std::shared_ptr<const RunHead> head, Instant due_at, std::uint32_t waiting_for);

// --- by owner -----------------------------------------------------------------------------------------------------

// The next attempt of a queued job; none when no worker may take it now.
std::optional<Run> decide_take(const Run& run, const TakeRequest& request, Fence fence, Instant now);

struct ExtendDecision {
  std::optional<Run> next;
  ExtendReply reply;
};
ExtendDecision decide_extend(const Run& run, const ExtendRequest& request, Instant now);

struct SettleDecision {
  std::optional<Run> next;       // none: nothing changes
  std::optional<Error> refused;  // LEASE_LOST or ALREADY_SETTLED
};
SettleDecision decide_settle(const Run& run, const SettleRequest& request, Dice dice, Instant now);

// --- by operator and by time --------------------------------------------------------------------------------------

struct MoveDecision {
  std::optional<Run> next;
  std::optional<Error> refused;
};
MoveDecision decide_move(const Run& run, const Move& move, Uuid fresh_effect_key, Instant now);

// The time at which this run changes without a request; none when there is no such time.
std::optional<Instant> next_deadline(const Run& run);
// The run after its deadline; none when the deadline has not passed.
std::optional<Run> decide_deadline(const Run& run, Instant now);

// The run after one of its predecessors has ended; none when the run does not change.
std::optional<Run> decide_predecessor(const Run& run, const Run& predecessor, Instant now);

// True if window and retention are over. The store also checks for doubt, unacknowledged dead letters and dependents.
bool may_purge(const Run& run, const Retention& retention, Instant now);

}  // namespace latchkey
