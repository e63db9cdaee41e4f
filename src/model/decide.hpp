// The state machine as pure functions: given a run and a wish, what should be written and what should be said.
// They draw nothing and read no clock: fences, ids, dice and the instant are arguments. Doing it is the store's part.
#pragma once

#include <optional>
#include <variant>

#include "model/requests.hpp"
#include "model/run.hpp"

namespace latchkey {

// How long a claimed run that failed, or whose caller vanished, waits for a caller before it is given up.
inline constexpr Duration kCallerPatience = std::chrono::hours{24};
// A Retry-After longer than this is cut.
inline constexpr Duration kRetryAfterMax = std::chrono::hours{24};

struct Retention {
  Duration done = std::chrono::hours{24 * 7};
  Duration failed = std::chrono::hours{24 * 30};
  Duration audit = std::chrono::hours{24 * 400};  // of audit entries; at least 30 days
  bool operator==(const Retention&) const = default;
};

// --- by key -------------------------------------------------------------------------------------------------------

// What is to be done for a claim. `ended`: how the key's run must first be recorded, where time had ended it unseen.
struct StartNew {
  std::optional<Run> ended;
};
struct StartAgain {
  Run next;  // running, with the fence that was offered
  std::optional<Run> ended;
};
struct Refuse {
  ClaimReply reply;
  std::optional<Run> next;  // set when looking at it changed it (lease over, now in doubt)
};
using ClaimDecision = std::variant<StartNew, StartAgain, Refuse>;

// `latest` is the key's latest run, or none. `fence` is used only if the claim wins.
ClaimDecision decide_claim(const std::optional<Run>& latest, const ClaimRequest& request, Fence fence, Instant now);
// The first try of a new run.
Run start_claimed(std::shared_ptr<const RunHead> head, const ClaimRequest& request, Fence fence, Instant now);

struct EnqueueNew {};
struct Reopen {
  Run next;
};
struct KeepExisting {
  EnqueueReply reply;
};
using EnqueueDecision = std::variant<EnqueueNew, Reopen, KeepExisting>;

EnqueueDecision decide_enqueue(const std::optional<Run>& latest, const EnqueueRequest& request, Instant now);
Run start_queued(std::shared_ptr<const RunHead> head, Instant due_at, std::uint32_t waiting_for);

// --- by owner -----------------------------------------------------------------------------------------------------

// A queued job's next try; none when it is not a worker's to take now.
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

// --- by hand and by time ------------------------------------------------------------------------------------------

struct MoveDecision {
  std::optional<Run> next;
  std::optional<Error> refused;
};
MoveDecision decide_move(const Run& run, const Move& move, Uuid fresh_effect_key, Instant now);

// When time alone will change this run; none when it never does.
std::optional<Instant> next_deadline(const Run& run);
// What the passing of time makes of a run; none when nothing is due.
std::optional<Run> decide_deadline(const Run& run, Instant now);

// A predecessor ended: the run as it is afterwards, none when it does not change.
std::optional<Run> decide_predecessor(const Run& run, const Run& predecessor, Instant now);

// Whether window and retention are over. Doubt, unread dead letters and dependents are the store's to know.
bool may_purge(const Run& run, const Retention& retention, Instant now);

}  // namespace latchkey
