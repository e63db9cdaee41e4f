// The requests to a store and its replies. An expected reply is a variant; a failure of the store is an Error.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/run.hpp"

namespace latchkey {

struct ClaimRequest {
  std::string tenant = "default";
  std::string function;
  std::string key;
  Digest key_hash{};
  Guard guard = Guard::once;
  OnDoubt on_doubt = OnDoubt::rerun;
  std::optional<Fingerprint> fingerprint;
  RetryPolicy retry;
  Duration window = kDefaultWindow;
  Duration lease = kDefaultLease;
  Bytes input;
  std::string caller;
  ClaimId claim;
  // For a key that is built from the time: the key of the previous bucket. If this claim id won under that key, the
  // call is a retry and continues with that key. Empty: there is no previous key.
  std::string key_before;
  Digest key_before_hash{};
};

// Won: the caller runs the effect, then settles with this fence.
struct Won {
  Run run;
  Fence fence{};
  Instant lease_until;
  bool repeated = false;  // the same call won before
};
// Another owner has a lease that has not expired, or the run is queued for a worker.
struct Busy {
  Run run;
  Code code = Code::ALREADY_RUNNING;  // or ALREADY_QUEUED, or MOVE_REFUSED: only an operator can open the run again
  Duration retry_after{};
};
// An attempt failed, and the next one is not due yet.
struct NotDue {
  Run run;
  Duration retry_after{};
};
// The effect may have happened; an operator decides.
struct InDoubtReply {
  Run run;
};
// The run completed before; the reply contains its outcome.
struct Replay {
  Run run;
};
// The key was used with another fingerprint.
struct Mismatch {
  RunId existing;
};
using ClaimReply = std::variant<Won, Busy, NotDue, InDoubtReply, Replay, Mismatch>;

struct EnqueueRequest {
  std::string tenant = "default";
  std::string function;
  std::string key;
  Digest key_hash{};
  Guard guard = Guard::none;
  OnDoubt on_doubt = OnDoubt::rerun;
  MadeBy made_by = MadeBy::caller;
  std::optional<Fingerprint> fingerprint;
  RetryPolicy retry;
  Duration window = kDefaultWindow;
  Duration lease = kDefaultLease;
  Bytes input;
  std::string caller;
  std::int32_t priority = 0;
  Duration delay{};          // the run is due this long after it was enqueued
  std::vector<RunId> after;  // the predecessors, of the same tenant
  OnFailed on_failed = OnFailed::wait;
  ClaimId claim;  // identifies this call, with or without a key: a retry after a lost reply finds its run
};

struct Enqueued {
  Run run;
  bool duplicate = false;  // the key already had a run; no run was created
};
using EnqueueReply = std::variant<Enqueued, Mismatch, Error>;

struct TakeRequest {
  std::optional<std::string> tenant;  // none: of every tenant
  std::vector<std::string> functions;
  std::uint32_t limit = 1;
  Uuid session;
  std::optional<Duration> lease;  // none: the run's own
};
using Taken = Won;

// The ways in which an owner ends its attempt.
struct Complete {
  Bytes result;
  std::vector<EnqueueRequest> follow_ups;  // unique by (run, position)
};
struct Fail {
  std::string message;
  std::string code;
  bool retryable = true;
  bool outcome_unknown = false;  // the effect may have happened
  std::optional<Duration> retry_after;
};
// The run is queued again and one more attempt is allowed. If the attempt of a claimed run has failed, release cancels
// the retry delay: the run is due at once, and the failed attempt counts.
struct Release {};
struct Snooze {
  Duration span{};
};
using Ending = std::variant<Complete, Fail, Release, Snooze>;

struct SettleRequest {
  std::optional<std::string> tenant;  // none: any
  RunId id;
  Fence fence{};
  Ending ending;
};

// Settled: the run in its current state. `changed` is false for a repeat of the same settle. A follow-up whose
// key was used with another fingerprint is not created, and its reply is a Mismatch; the run is settled all the same.
struct Settled {
  Run run;
  bool changed = true;
  std::optional<Uuid> dead_letter;
  std::vector<EnqueueReply> follow_ups;  // in the order of the request; the reply to a repeat may have fewer
};
using SettleReply = std::variant<Settled, Error>;  // LEASE_LOST, ALREADY_SETTLED, NOT_FOUND

struct ExtendRequest {
  std::optional<std::string> tenant;
  RunId id;
  Fence fence{};
  std::optional<Duration> lease;  // none: the one that the owner asked for
};
struct Extended {
  Instant lease_until;
  bool cancel_requested = false;
};
using ExtendReply = std::variant<Extended, Error>;  // LEASE_LOST, NOT_FOUND

// The actions of an operator on a run.
struct CancelByHand {};
struct RetryByHand {
  bool fresh_effect_key = false;
};
struct ResolveCompleted {
  Bytes result;
};
struct ResolveFailed {
  std::string note;
};
struct ResolveRerun {};
using Move = std::variant<CancelByHand, RetryByHand, ResolveCompleted, ResolveFailed, ResolveRerun>;

struct MoveRequest {
  std::optional<std::string> tenant;
  RunId id;
  Move move;
};
struct Moved {
  Run run;
  bool changed = true;
};
using MoveReply = std::variant<Moved, Error>;  // MOVE_REFUSED, NOT_FOUND

}  // namespace latchkey
