// Run: one execution of a function under a key; the record that everything in Latchkey is made of.
//
//            enqueue              take / claim: new fence, attempt+1         complete
//  (absent) ────────▶ queued ───────────────────────────▶ running ──────────────────▶ completed
//                      ▲  │ cancel                         │ │ │
//                      │  └───────▶ cancelled ◀─ by hand ─┐│ │ └ outcome unknown, on_doubt: hold ▶ in_doubt
//                      │                                  ││ └── permanent error, or retries used up ▶ failed
//                      └── failed try, release, snooze ───┼┘                                            │
//                      ▲                                  └──────────────────────────────── by hand ────┤
//                      └───────── opened again: a new generation (by hand, or by a repeat under `once`) ┘
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
// Bytes of an input or result: kept and given back as they came.
using Bytes = std::string;
// Names one call (a claim or an enqueue), so that the same call again (its reply was lost) recognises what it did. Nil:
// the call has no name.
using ClaimId = Uuid;

// Which owner: from one counter per store, drawn while the key is locked, so it only rises. Below 2^53. 0: never owned.
enum class Fence : std::uint64_t {};

// once: at most one success within the window. while_running: at most one open run. none: history only.
enum class Guard : std::uint8_t { none, once, while_running };
// What becomes of a run whose effect may or may not have happened.
enum class OnDoubt : std::uint8_t { rerun, hold };
// Who starts the tries: the caller that claimed it, or a worker that takes it.
enum class Origin : std::uint8_t { claimed, enqueued };
// Runs that Latchkey makes itself are unique by origin in every state.
enum class MadeBy : std::uint8_t { caller, latchkey };
// What a predecessor that did not complete means for a run that waits for it.
enum class OnFailed : std::uint8_t { wait, skip, run, fail };
// Whether the try that ended may have had its effect.
enum class Effect : std::uint8_t { none, unknown };

inline constexpr Duration kDefaultLease = std::chrono::seconds{60};
inline constexpr Duration kDefaultWindow = std::chrono::hours{24};

// What never changes about a run.
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
  std::string caller;  // who asked, for people
  ClaimId claim;       // the call that made it
  // Without a guard: key_hash is that of the call, so that the same call again finds what it made. Unlike `once` it has
  // no window: it holds until the run is purged.
  bool by_call = false;

  // Whether the run is found by its key_hash.
  bool guarded() const { return by_call || (!key.empty() && guard != Guard::none); }
};

// Why a run is queued: a settle that is repeated must recognise its own move. doubtful_try: a failed try whose effect
// may have happened, under `rerun`.
enum class QueuedBy : std::uint8_t { enqueue, failed_try, release, lease_end, reopen, doubtful_try };

struct Queued {
  Instant due_at;
  QueuedBy by = QueuedBy::enqueue;
  bool operator==(const Queued&) const = default;
};
struct Running {
  Instant started_at;
  Instant lease_until;
  ClaimId claim;                   // the call that won it
  Uuid session;                    // the worker's life that took it; nil for claims
  Duration lease = kDefaultLease;  // the owner's own: what a heartbeat that names none extends by
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
// The variant's alternatives in order; also what stores write.
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
  std::uint32_t attempts_max = 1;    // retries + 1, one more for each release; the retries of who opened the generation
  std::uint32_t failures = 0;        // tries of this generation that failed and left it open: what delays go by
  std::uint32_t attempts_total = 0;  // over all generations
  Fence fence{0};                    // the newest owner's
  Instant first_attempt_at;          // of this generation; epoch before the first
  std::uint32_t waiting_for = 0;     // predecessors that have not ended as wanted
  std::string last_error;            // message of the latest failed try
  std::string last_error_code;       // the caller's own code for it
  ClaimId opened_by;                 // the enqueue that opened this generation; nil: the first, or not by an enqueue
  Uuid effect_key;                   // the run's id, unless a retry by hand asked for a fresh one
  State state;

  const RunId& id() const { return head->id; }
  Status status() const { return static_cast<Status>(state.index()); }
  bool is_open() const { return status() <= Status::in_doubt; }
  bool is_settled() const { return !is_open(); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&state);
  }
  // When it was settled; epoch while it is open.
  Instant settled_at() const;
  // Completed, under `once`, and its window is not over.
  bool in_window(Instant now) const;
};

}  // namespace latchkey
