// What callers ask of a store, and what they may be told. Replies that are no failure are variants.
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
  // Where the key was built from the time: what it was a moment ago. A call that has a name and won under that key is
  // the same call, and goes by that key. Empty: there is none.
  std::string key_before;
  Digest key_before_hash{};
};

// Won: run it, then settle with this fence.
struct Won {
  Run run;
  Fence fence{};
  Instant lease_until;
  bool repeated = false;  // the same call won before
};
// Somebody else's lease is good, or a worker will take it.
struct Busy {
  Run run;
  Code code = Code::ALREADY_RUNNING;  // or ALREADY_QUEUED
  Duration retry_after{};
};
// It failed a try and waits for the next one.
struct NotDue {
  Run run;
  Duration retry_after{};
};
// Its effect may have happened; a person decides.
struct InDoubtReply {
  Run run;
};
// It was done before: here is its outcome.
struct Replay {
  Run run;
};
// The key was used for another request.
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
  Duration delay{};          // due this long after it was enqueued
  std::vector<RunId> after;  // runs it waits for, of the same tenant
  OnFailed on_failed = OnFailed::wait;
  ClaimId claim;  // by which the same call again, its reply lost, is recognised; also where there is no key
};

struct Enqueued {
  Run run;
  bool duplicate = false;  // the key's run stood already
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

// How an owner ends its try.
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
// Give it back; the try does not count against the limit. Of a claimed run whose try has failed, the wait for the next
// one: the run is due at once, and that try counts.
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

// Settled: the run as it stands now. `changed` is false when this was a repeat of the same settle. A follow-up whose
// key belongs to another request does not keep the outcome from standing: it is not made, and its place says Mismatch.
struct Settled {
  Run run;
  bool changed = true;
  std::optional<Uuid> dead_letter;
  std::vector<EnqueueReply> follow_ups;  // in their order; a repeat's may be fewer
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

// What a person may do to a run.
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
