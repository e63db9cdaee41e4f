#include "store/postgres/run_columns.hpp"

#include <cstring>

#include "model/decide.hpp"
#include "store/packing.hpp"

namespace latchkey::pg {

namespace {

// The order of head_columns and of state_columns.
enum HeadAt : int {
  kSeq,
  kId,
  kTenant,
  kFunction,
  kKey,
  kHash,
  kTraits,
  kPriority,
  kFingerprint,
  kRetries,
  kRetry,
  kWindow,
  kLease,
  kCreatedAt,
  kInput,
  kCaller,
  kClaim,
  kHeadEnd
};
static_assert(kHeadEnd == kHeadColumnCount);
enum StateAt : int {
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
  kEffect,
  kStateEnd
};
static_assert(kStateEnd == kStateColumnCount && kAt == kStateAtColumn);
constexpr int kCancelRequested = 1, kTaken = 2;

// The columns of latchkey.states, one array each.
struct StateColumns {
  Column seq{Type::int8}, tenant{Type::text}, function{Type::text}, priority{Type::int4}, status{Type::int4},
      origin{Type::int4}, generation{Type::int4}, attempt{Type::int4}, attempts_max{Type::int8},
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
    seq.add(seq_in(run.id()));
    tenant.add(run.head->tenant);
    function.add(run.head->function);
    priority.add(run.head->priority);
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

  Bulk bulk() const {
    return {{{"seq", &seq},
             {"tenant", &tenant},
             {"function", &function},
             {"priority", &priority},
             {"status", &status},
             {"origin", &origin},
             {"generation", &generation},
             {"attempt", &attempt},
             {"attempts_max", &attempts_max},
             {"attempts_total", &attempts_total},
             {"fence", &fence},
             {"first_attempt_at", &first_attempt_at},
             {"waiting_for", &waiting_for},
             {"failures", &failures},
             {"at", &at},
             {"lease_until", &lease_until},
             {"owner_lease_ms", &owner_lease},
             {"flags", &flags},
             {"owner", &owner},
             {"opened_by", &opened_by},
             {"last_error", &last_error},
             {"last_error_code", &last_error_code},
             {"effect_key", &effect_key},
             {"result", &result},
             {"code", &code},
             {"effect", &effect},
             {"deadline", &deadline}}};
  }
};

State read_state(const Rows& rows, int row, int from) {
  const Instant at = from_ms(rows.integer(row, from + kAt));
  const std::int64_t flags = rows.integer(row, from + kFlags);
  const auto effect = static_cast<Effect>(rows.integer(row, from + kEffect));
  switch (static_cast<Status>(rows.integer(row, from + kStatus))) {
    case Status::queued:
      return Queued{at, static_cast<QueuedBy>(flags)};
    case Status::running: {
      const bool taken = (flags & kTaken) != 0;
      const Uuid owner = rows.uuid(row, from + kOwner);
      return Running{.started_at = at,
                     .lease_until = from_ms(rows.integer(row, from + kLeaseUntil)),
                     .claim = taken ? Uuid{} : owner,
                     .session = taken ? owner : Uuid{},
                     .lease = Duration{rows.integer(row, from + kOwnerLease)},
                     .cancel_requested = (flags & kCancelRequested) != 0};
    }
    case Status::in_doubt:
      return InDoubt{at};
    case Status::completed:
      return Completed{at, Bytes(rows.bytes(row, from + kResult))};
    case Status::failed:
      return Failed{at, std::string(rows.bytes(row, from + kCode)), effect};
    case Status::cancelled:
      break;
  }
  return Cancelled{at, std::string(rows.bytes(row, from + kCode)), effect};
}

template <class Array>
bool copy_exactly(std::string_view from, Array& to) {
  if (from.size() != to.size()) return false;
  std::memcpy(to.data(), from.data(), to.size());
  return true;
}

}  // namespace

std::shared_ptr<const RunHead> read_head(const Rows& rows, int row, int from) {
  auto head = std::make_shared<RunHead>();
  head->id = rows.uuid(row, from + kId);
  head->tenant = rows.bytes(row, from + kTenant);
  head->function = rows.bytes(row, from + kFunction);
  head->key = rows.bytes(row, from + kKey);
  unpack_traits(rows.integer(row, from + kTraits), *head);
  head->priority = static_cast<std::int32_t>(rows.integer(row, from + kPriority));
  if (Fingerprint print; copy_exactly(rows.bytes(row, from + kFingerprint), print)) head->fingerprint = print;
  head->retry = unpack_retry(rows.bytes(row, from + kRetry));
  head->window = Duration{rows.integer(row, from + kWindow)};
  head->lease = Duration{rows.integer(row, from + kLease)};
  head->created_at = from_ms(rows.integer(row, from + kCreatedAt));
  head->input = rows.bytes(row, from + kInput);
  head->caller = rows.bytes(row, from + kCaller);
  head->claim = rows.uuid(row, from + kClaim);
  // The table stores half of the hash. If the text of the key has that half, the other half is computed from it.
  if (!rows.is_null(row, from + kHash)) {
    const Uuid name = rows.uuid(row, from + kHash);
    const Digest whole =
        thread_sha256().add_prefixed(head->tenant).add_prefixed(head->function).add_prefixed(head->key).finish();
    if (name_key(whole) == name) head->key_hash = whole;
    std::memcpy(head->key_hash.data(), name.bytes.data(), name.bytes.size());
  }
  return head;
}

void read_state(const Rows& rows, int row, int from, Run& run) {
  run.origin = static_cast<Origin>(rows.integer(row, from + kOrigin));
  run.generation = static_cast<std::uint32_t>(rows.integer(row, from + kGeneration));
  run.attempt = static_cast<std::uint32_t>(rows.integer(row, from + kAttempt));
  run.attempts_max = static_cast<std::uint32_t>(rows.integer(row, from + kAttemptsMax));
  run.attempts_total = static_cast<std::uint32_t>(rows.integer(row, from + kAttemptsTotal));
  run.fence = static_cast<Fence>(rows.integer(row, from + kFence));
  run.first_attempt_at = from_ms(rows.integer(row, from + kFirstAttemptAt));
  run.waiting_for = static_cast<std::uint32_t>(rows.integer(row, from + kWaitingFor));
  run.failures = static_cast<std::uint32_t>(rows.integer(row, from + kFailures));
  run.opened_by = rows.uuid(row, from + kOpenedBy);
  run.last_error = rows.bytes(row, from + kLastError);
  run.last_error_code = rows.bytes(row, from + kLastErrorCode);
  run.effect_key = rows.uuid(row, from + kEffectKey);
  run.state = read_state(rows, row, from);
}

Run with_head(Run run, std::shared_ptr<const RunHead> head) {
  if (run.effect_key.is_nil()) run.effect_key = head->id;
  run.head = std::move(head);
  return run;
}

Run read_run(const Rows& rows, int row, int from) {
  Run run;
  read_state(rows, row, from + kHeadColumnCount, run);
  return with_head(std::move(run), read_head(rows, row, from));
}

Statement insert_heads(std::span<const Run* const> runs) {
  Column seq{Type::int8}, id{Type::uuid}, tenant{Type::text}, function{Type::text}, key{Type::bytes}, hash{Type::uuid},
      traits{Type::int4}, priority{Type::int4}, fingerprint{Type::bytes}, retries{Type::int8}, retry{Type::bytes},
      window{Type::int8}, lease{Type::int8}, created_at{Type::int8}, input{Type::bytes}, caller{Type::bytes},
      claim{Type::uuid};
  std::vector<std::int64_t> packed;
  for (const Run* run : runs) {
    const RunHead& head = *run->head;
    seq.add(seq_in(head.id));
    id.add(head.id);
    tenant.add(head.tenant);
    function.add(head.function);
    key.add_or_null(head.key);
    head.guarded() ? hash.add(name_key(head.key_hash)) : hash.add_null();
    traits.add(pack_traits(head));
    priority.add(head.priority);
    head.fingerprint ? fingerprint.add(*head.fingerprint) : fingerprint.add_null();
    retries.add(head.retry.retries);
    retry.add_or_null(pack_retry(head.retry, packed));
    window.add(head.window.count());
    lease.add(head.lease.count());
    created_at.add(to_ms(head.created_at));
    input.add_or_null(head.input);
    caller.add_or_null(head.caller);
    claim.add_or_null(head.claim);
  }
  return Bulk{{{"seq", &seq},
               {"id", &id},
               {"tenant", &tenant},
               {"function", &function},
               {"key", &key},
               {"hash", &hash},
               {"traits", &traits},
               {"priority", &priority},
               {"fingerprint", &fingerprint},
               {"retries", &retries},
               {"retry", &retry},
               {"window_ms", &window},
               {"lease_ms", &lease},
               {"created_at", &created_at},
               {"input", &input},
               {"caller", &caller},
               {"claim", &claim}}}
      .insert_into("latchkey.runs");
}

Statement insert_states(std::span<const Run* const> runs) {
  StateColumns columns;
  for (const Run* run : runs) columns.add(*run);
  return columns.bulk().insert_into("latchkey.states");
}

Statement update_states(std::span<const Run* const> runs) {
  StateColumns columns;
  for (const Run* run : runs) columns.add(*run);
  return columns.bulk().update("latchkey.states");
}

}  // namespace latchkey::pg
