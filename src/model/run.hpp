// Run: one execution of a function under a key; the record that everything in Latchkey is made of.
//
//            enqueue              take / claim: new fence, attempt+1         complete
//  (absent) ────────▶ queued ───────────────────────────▶ running ──────────────────▶ completed
//                      ▲  │ cancel                         │ │ │
//                      │  └───────▶ cancelled ◀─ operator ┐│ │ └ outcome unknown, on_doubt: hold ▶ in_doubt
//                      │                                  ││ └── permanent error, or retries used up ▶ failed
//                      └─ failed attempt, release, snooze ┼┘                                            │
//                      ▲                                  └─────────────────────────────── operator ────┤
//                      └──── opened again: a new generation (by an operator, or a repeat under `once`) ─┘
//
// A Run is an immutable snapshot: decide_*() makes the next one. Its head never changes and is shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/sha256.hpp"
#include "base/time.hpp"
#include "base/uuid.hpp"
#include "model/retry_policy.hpp"

namespace latchkey {

using RunId = Uuid;
using Fingerprint = Digest;
// Bytes of an input or result, stored and returned unchanged.
using Bytes = std::string;
// Identifies one call (a claim or an enqueue). A call that is sent again after a lost reply gets its own run back. Nil:
// the call has no id.
using ClaimId = Uuid;

// Identifies an owner. Drawn from one counter per store while the key is locked, so that it only rises. Below 2^53. 0:
// the run has had no owner.
enum class Fence : std::uint64_t {};

// once: at most one success within the window. while_running: at most one open run. none: history only.
enum class Guard : std::uint8_t { none, once, while_running };
// The treatment of a run whose effect may have happened.
enum class OnDoubt : std::uint8_t { rerun, hold };
// The party that starts the attempts: the caller that claimed the run, or a worker that takes it.
enum class Origin : std::uint8_t { claimed, enqueued };
// Runs that Latchkey makes itself are unique by origin in every state.
enum class MadeBy : std::uint8_t { caller, latchkey };
// The effect on a dependent of a predecessor that did not complete.
enum class OnFailed : std::uint8_t { wait, skip, run, fail };
// Whether the effect of the last attempt may have happened.
enum class Effect : std::uint8_t { none, unknown };

inline constexpr Duration kDefaultLease = std::chrono::seconds{60};
inline constexpr Duration kDefaultWindow = std::chrono::hours{24};

// The part of a run that never changes.
struct RunHead {
  RunId id;
  std::string tenant;
  std::string function;  // also the key's scope
  std::string key;       // empty: no key
  Digest key_hash{};     // over (tenant, function, key); see keying/key_hash.hpp
  Guard guard = Guard::none;
  MadeBy made_by = MadeBy::caller;
  OnDoubt on_doubt = OnDoubt::rerun;
  OnFailed on_failed = OnFailed::wait;
  std::int32_t priority = 0;  // −100…100, higher first
  std::optional<Fingerprint> fingerprint;
  RetryPolicy retry;
  Duration window = kDefaultWindow;
  Duration lease = kDefaultLease;
  Instant created_at;
  Bytes input;
  std::string caller;  // the name of the caller, for operators to read
  ClaimId claim;       // the call that created the run
  // Without a guard, key_hash may be the hash of the call, so that a repeated call finds its run. Unlike `once` this
  // has no window: it applies until the run is purged.
  bool by_call = false;

  // True if the run is found by its key_hash.
  bool guarded() const { return by_call || (!key.empty() && guard != Guard::none); }
};

// The reason for which a run is queued, so that a repeated settle recognises its own effect. doubtful_attempt: the
// effect of the failed attempt may have happened, under `rerun`.
enum class QueuedBy : std::uint8_t { enqueue, failed_attempt, release, lease_end, reopen, doubtful_attempt };

struct Queued {
  Instant due_at;
  QueuedBy by = QueuedBy::enqueue;
  bool operator==(const Queued&) const = default;
};
struct Running {
  Instant started_at;
  Instant lease_until;
  ClaimId claim;                   // the call that won the run
  Uuid session;                    // the session of the worker that took the run; nil for claims
  Duration lease = kDefaultLease;  // the owner's lease: a heartbeat without a lease extends by it
  bool cancel_requested = false;
  bool operator==(const Running&) const = default;
};
struct InDoubt {
  Instant since;
  bool operator==(const InDoubt&) const = default;
};
struct Completed {
  Instant at;
  Bytes result;
  bool operator==(const Completed&) const = default;
};
struct Failed {
  Instant at;
  std::string code;  // MAX_RETRIES_EXCEEDED, EXECUTION_ERROR, OUTCOME_UNKNOWN, PREDECESSOR_FAILED
  Effect effect = Effect::none;
  bool operator==(const Failed&) const = default;
};
struct Cancelled {
  Instant at;
  std::string code;  // CANCELLED, PREDECESSOR_FAILED
  Effect effect = Effect::none;
  bool operator==(const Cancelled&) const = default;
};

using State = std::variant<Queued, Running, InDoubt, Completed, Failed, Cancelled>;
// The alternatives of State in their order. Stores write these numbers.
enum class Status : std::uint8_t { queued, running, in_doubt, completed, failed, cancelled };

std::string_view to_string(Status status);
std::optional<Status> parse_status(std::string_view text);
std::string_view to_string(Guard guard);
std::optional<Guard> parse_guard(std::string_view text);
std::string_view to_string(OnDoubt on_doubt);
std::string_view to_string(Effect effect);

struct Run {
  std::shared_ptr<const RunHead> head;
  Origin origin = Origin::claimed;  // of this generation
  std::uint32_t generation = 1;
  std::uint32_t attempt = 0;         // in this generation, counted at claim
  std::uint32_t attempts_max = 1;    // 1 + the retries of the request that opened it, one more for each release
  std::uint32_t failures = 0;        // failed attempts that left this generation open; they determine the delay
  std::uint32_t attempts_total = 0;  // over all generations
  Fence fence{0};                    // the newest owner's
  Instant first_attempt_at;          // of this generation; epoch before the first
  std::uint32_t waiting_for = 0;     // number of predecessors that still block this run
  std::string last_error;            // message of the latest failed attempt
  std::string last_error_code;       // its code, given by the owner
  ClaimId opened_by;                 // the enqueue that opened this generation; nil: the first, or no enqueue
  Uuid effect_key;                   // the run's id, unless an operator's retry requested a new one
  State state;

  const RunId& id() const { return head->id; }
  Status status() const { return static_cast<Status>(state.index()); }
  bool is_open() const { return status() <= Status::in_doubt; }
  bool is_settled() const { return !is_open(); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&state);
  }
  // The time at which the run was settled; epoch while it is open.
  Instant settled_at() const;
  // True if the run completed under `once` and its window is not over.
  bool in_window(Instant now) const;
};

}  // namespace latchkey
