#include "store/postgres/run_columns.hpp"

#include <cstring>

#include "model/decide.hpp"
#include "store/packing.hpp"

namespace latchkey::pg {

const char* const kRunColumns =
    "r.seq, r.id, r.tenant, r.function, r.key, r.hash, r.traits, r.priority, r.fingerprint, r.retry, r.window_ms, "
    "r.lease_ms, r.created_at, r.input, r.caller, r.claim, r.status, r.origin, r.generation, r.attempt, "
    "r.attempts_max, "
    "r.attempts_total, r.fence, r.first_attempt_at, r.waiting_for, r.failures, r.at, r.lease_until, r.owner_lease_ms, "
    "r.flags, r.owner, r.opened_by, "
    "r.last_error, r.last_error_code, r.effect_key, r.result, r.code, r.effect";

namespace {

// As they are in kRunColumns.
enum At : int {
  kId = 1,
  kTenant,
  kFunction,
  kKey,
  kHash,
  kTraits,
  kPriority,
  kFingerprint,
  kRetry,
  kWindow,
  kLease,
  kCreatedAt,
  kInput,
  kCaller,
  kClaim,
  kStatus,
  kOrigin,
  kGeneration,
  kAttempt,
  kAttemptsMax,
  kAttemptsTotal,
  kFence,
  kFirstAttemptAt,
  kWaitingFor,
  kFailures,
  kAt,
  kLeaseUntil,
  kOwnerLease,
  kFlags,
  kOwner,
  kOpenedBy,
  kLastError,
  kLastErrorCode,
  kEffectKey,
  kResult,
  kCode,
  kEffect
};
constexpr int kCancelRequested = 1, kTaken = 2;

// The columns of a state, one array each.
struct StateColumns {
  Column status{Type::int4}, origin{Type::int4}, generation{Type::int4}, attempt{Type::int4}, attempts_max{Type::int8},
      attempts_total{Type::int4}, fence{Type::int8}, first_attempt_at{Type::int8}, waiting_for{Type::int4},
      failures{Type::int4}, at{Type::int8}, lease_until{Type::int8}, owner_lease{Type::int8}, flags{Type::int4},
      owner{Type::uuid}, opened_by{Type::uuid}, last_error{Type::bytes}, last_error_code{Type::bytes},
      effect_key{Type::uuid}, result{Type::bytes}, code{Type::text}, effect{Type::int4}, deadline{Type::int8};

  void add(const Run& run) {
    std::int64_t flag = 0;
    Uuid owned_by;
    std::optional<Instant> lease, when;
    std::optional<Duration> owners;
    std::string_view outcome, why;
    Effect had = Effect::none;
    if (const auto* queued = run.as<Queued>()) {
      when = queued->due_at;
      flag = static_cast<int>(queued->by);
    } else if (const auto* running = run.as<Running>()) {
      when = running->started_at;
      lease = running->lease_until;
      owners = running->lease;
      const bool taken = !running->session.is_nil();
      flag = (running->cancel_requested ? kCancelRequested : 0) | (taken ? kTaken : 0);
      owned_by = taken ? running->session : running->claim;
    } else if (const auto* doubt = run.as<InDoubt>()) {
      when = doubt->since;
    } else if (const auto* completed = run.as<Completed>()) {
      when = completed->at, outcome = completed->result;
    } else if (const auto* failed = run.as<Failed>()) {
      when = failed->at, why = failed->code, had = failed->effect;
    } else if (const auto* cancelled = run.as<Cancelled>()) {
      when = cancelled->at, why = cancelled->code, had = cancelled->effect;
    }
    status.add(static_cast<int>(run.status()));
    origin.add(static_cast<int>(run.origin));
    generation.add(run.generation);
    attempt.add(run.attempt);
    attempts_max.add(run.attempts_max);
    attempts_total.add(run.attempts_total);
    fence.add(static_cast<std::int64_t>(run.fence));
    first_attempt_at.add(to_ms(run.first_attempt_at));
    waiting_for.add(run.waiting_for);
    failures.add(run.failures);
    at.add(to_ms(*when));
    lease ? lease_until.add(to_ms(*lease)) : lease_until.add_null();
    owners ? owner_lease.add(owners->count()) : owner_lease.add_null();
    flags.add(flag);
    owner.add_or_null(owned_by);
    opened_by.add_or_null(run.opened_by);
    last_error.add_or_null(run.last_error);
    last_error_code.add_or_null(run.last_error_code);
    run.effect_key == run.id() ? effect_key.add_null() : effect_key.add(run.effect_key);
    result.add_or_null(outcome);
    code.add_or_null(why);
    effect.add(static_cast<int>(had));
    const auto next = next_deadline(run);
    next ? deadline.add(to_ms(*next)) : deadline.add_null();
  }

  void put(Params& params) const {
    for (const Column* column : {&status,       &origin,          &generation, &attempt,
                                 &attempts_max, &attempts_total,  &fence,      &first_attempt_at,
                                 &waiting_for,  &failures,        &at,         &lease_until,
                                 &owner_lease,  &flags,           &owner,      &opened_by,
                                 &last_error,   &last_error_code, &effect_key, &result,
                                 &code,         &effect,          &deadline})
      params.add(*column);
  }
};

constexpr const char* kStateNames =
    "status, origin, generation, attempt, attempts_max, attempts_total, fence, first_attempt_at, waiting_for, "
    "failures, at, "
    "lease_until, owner_lease_ms, flags, owner, opened_by, last_error, last_error_code, effect_key, result, code, "
    "effect, deadline";

std::string numbered(int from, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(from + i);
  return text;
}

State read_state(const Rows& rows, int row) {
  const Instant at = from_ms(rows.integer(row, kAt));
  const std::int64_t flags = rows.integer(row, kFlags);
  const auto effect = static_cast<Effect>(rows.integer(row, kEffect));
  switch (static_cast<Status>(rows.integer(row, kStatus))) {
    case Status::queued:
      return Queued{at, static_cast<QueuedBy>(flags)};
    case Status::running: {
      const bool taken = (flags & kTaken) != 0;
      const Uuid owner = rows.uuid(row, kOwner);
      return Running{.started_at = at,
                     .lease_until = from_ms(rows.integer(row, kLeaseUntil)),
                     .claim = taken ? Uuid{} : owner,
                     .session = taken ? owner : Uuid{},
                     .lease = Duration{rows.integer(row, kOwnerLease)},
                     .cancel_requested = (flags & kCancelRequested) != 0};
    }
    case Status::in_doubt:
      return InDoubt{at};
    case Status::completed:
      return Completed{at, Bytes(rows.bytes(row, kResult))};
    case Status::failed:
      return Failed{at, std::string(rows.bytes(row, kCode)), effect};
    case Status::cancelled:
      break;
  }
  return Cancelled{at, std::string(rows.bytes(row, kCode)), effect};
}

template <class Array>
bool copy_exactly(std::string_view from, Array& to) {
  if (from.size() != to.size()) return false;
  std::memcpy(to.data(), from.data(), to.size());
  return true;
}

std::shared_ptr<const RunHead> read_head(const Rows& rows, int row) {
  auto head = std::make_shared<RunHead>();
  head->id = rows.uuid(row, kId);
  head->tenant = rows.bytes(row, kTenant);
  head->function = rows.bytes(row, kFunction);
  head->key = rows.bytes(row, kKey);
  copy_exactly(rows.bytes(row, kHash), head->key_hash);
  unpack_traits(rows.integer(row, kTraits), *head);
  head->priority = static_cast<std::int32_t>(rows.integer(row, kPriority));
  if (Fingerprint print; copy_exactly(rows.bytes(row, kFingerprint), print)) head->fingerprint = print;
  head->retry = unpack_retry(rows.bytes(row, kRetry));
  head->window = Duration{rows.integer(row, kWindow)};
  head->lease = Duration{rows.integer(row, kLease)};
  head->created_at = from_ms(rows.integer(row, kCreatedAt));
  head->input = rows.bytes(row, kInput);
  head->caller = rows.bytes(row, kCaller);
  head->claim = rows.uuid(row, kClaim);
  return head;
}

}  // namespace

Run read_run(const Rows& rows, int row) {
  Run run;
  run.head = read_head(rows, row);
  run.origin = static_cast<Origin>(rows.integer(row, kOrigin));
  run.generation = static_cast<std::uint32_t>(rows.integer(row, kGeneration));
  run.attempt = static_cast<std::uint32_t>(rows.integer(row, kAttempt));
  run.attempts_max = static_cast<std::uint32_t>(rows.integer(row, kAttemptsMax));
  run.attempts_total = static_cast<std::uint32_t>(rows.integer(row, kAttemptsTotal));
  run.fence = static_cast<Fence>(rows.integer(row, kFence));
  run.first_attempt_at = from_ms(rows.integer(row, kFirstAttemptAt));
  run.waiting_for = static_cast<std::uint32_t>(rows.integer(row, kWaitingFor));
  run.failures = static_cast<std::uint32_t>(rows.integer(row, kFailures));
  run.opened_by = rows.uuid(row, kOpenedBy);
  run.last_error = rows.bytes(row, kLastError);
  run.last_error_code = rows.bytes(row, kLastErrorCode);
  run.effect_key = rows.is_null(row, kEffectKey) ? run.id() : rows.uuid(row, kEffectKey);
  run.state = read_state(rows, row);
  return run;
}

Statement insert_runs(std::span<const Run> runs) {
  Column seq{Type::int8}, id{Type::uuid}, tenant{Type::text}, function{Type::text}, key{Type::bytes}, hash{Type::bytes},
      traits{Type::int4}, priority{Type::int4}, fingerprint{Type::bytes}, retry{Type::bytes}, window{Type::int8},
      lease{Type::int8}, created_at{Type::int8}, input{Type::bytes}, caller{Type::bytes}, claim{Type::uuid};
  StateColumns state;
  std::vector<std::int64_t> packed;
  for (const Run& run : runs) {
    const RunHead& head = *run.head;
    seq.add(seq_of(head.id));
    id.add(head.id);
    tenant.add(head.tenant);
    function.add(head.function);
    key.add_or_null(head.key);
    head.guarded() ? hash.add(head.key_hash) : hash.add_null();
    traits.add(pack_traits(head));
    priority.add(head.priority);
    head.fingerprint ? fingerprint.add(*head.fingerprint) : fingerprint.add_null();
    retry.add_or_null(pack_retry(head.retry, packed));
    window.add(head.window.count());
    lease.add(head.lease.count());
    created_at.add(to_ms(head.created_at));
    input.add_or_null(head.input);
    caller.add_or_null(head.caller);
    claim.add_or_null(head.claim);
    state.add(run);
  }
  static const std::string kSql =
      std::string(
          "INSERT INTO latchkey.runs (seq, id, tenant, function, key, hash, traits, priority, fingerprint, retry, "
          "window_ms, lease_ms, created_at, input, caller, claim, ") +
      kStateNames + ") SELECT * FROM unnest(" + numbered(1, 39) + ")";
  Statement insert{kSql, {}};
  for (const Column* column : {&seq, &id, &tenant, &function, &key, &hash, &traits, &priority, &fingerprint, &retry,
                               &window, &lease, &created_at, &input, &caller, &claim})
    insert.params.add(*column);
  state.put(insert.params);
  return insert;
}

Statement update_runs(std::span<const Run> runs) {
  Column seq{Type::int8};
  StateColumns state;
  for (const Run& run : runs) {
    seq.add(seq_of(run.id()));
    state.add(run);
  }
  static const std::string kSql = [] {
    const std::string names = kStateNames;
    std::string of_u;
    for (std::size_t from = 0; from < names.size();) {
      const std::size_t end = std::min(names.find(", ", from), names.size());
      of_u += (from ? ", u." : "u.") + names.substr(from, end - from);
      from = end + 2;
    }
    return "UPDATE latchkey.runs r SET (" + names + ") = (SELECT " + of_u + ") FROM unnest(" + numbered(1, 24) +
           ") AS u(seq, " + names + ") WHERE r.seq = u.seq";
  }();
  Statement update{kSql, {}};
  update.params.add(seq);
  state.put(update.params);
  return update;
}

}  // namespace latchkey::pg
