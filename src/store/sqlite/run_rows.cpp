#include "store/sqlite/run_rows.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "store/sqlite/open_state.hpp"

namespace latchkey {
namespace {

std::int64_t pack_traits(const RunHead& head) {
  return static_cast<int>(head.guard) | static_cast<int>(head.on_doubt) << 2 | static_cast<int>(head.on_failed) << 3 |
         static_cast<int>(head.made_by) << 5 | static_cast<int>(head.by_call) << 6;
}

void unpack_traits(std::int64_t traits, RunHead& head) {
  head.guard = static_cast<Guard>(traits & 3);
  head.on_doubt = static_cast<OnDoubt>(traits >> 2 & 1);
  head.on_failed = static_cast<OnFailed>(traits >> 3 & 3);
  head.made_by = static_cast<MadeBy>(traits >> 5 & 1);
  head.by_call = (traits >> 6 & 1) != 0;
}

// Little-endian numbers of eight bytes: retries, first, factor, ceiling, total, jitter; then, where it says more than
// that, the jitter's percentage and the schedule's delays.
constexpr std::size_t kRetryFields = 6;
// What NULL stands for, and what is left out: spelled out, as the default of new runs may change and that of the runs
// that are kept may not.
const RetryPolicy kLeftOut{.retries = 3,
                           .first = std::chrono::seconds{1},
                           .factor = 5,
                           .ceiling = std::chrono::seconds{30},
                           .total = Duration::max(),
                           .jitter = Jitter::none,
                           .jitter_percent = 10,
                           .schedule = {}};

std::string_view pack_retry(const RetryPolicy& retry, std::vector<std::int64_t>& buffer) {
  if (retry == kLeftOut) return {};
  buffer = {retry.retries,         retry.first.count(), retry.factor,
            retry.ceiling.count(), retry.total.count(), static_cast<std::int64_t>(retry.jitter)};
  if (retry.jitter_percent != kLeftOut.jitter_percent || !retry.schedule.empty()) {
    buffer.push_back(retry.jitter_percent);
    for (const Duration delay : retry.schedule) buffer.push_back(delay.count());
  }
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(std::int64_t)};
}

RetryPolicy unpack_retry(std::string_view bytes) {
  std::vector<std::int64_t> fields(bytes.size() / sizeof(std::int64_t));
  if (fields.size() < kRetryFields) return kLeftOut;
  std::memcpy(fields.data(), bytes.data(), fields.size() * sizeof(std::int64_t));
  RetryPolicy retry{.retries = static_cast<std::uint32_t>(fields[0]),
                    .first = Duration{fields[1]},
                    .factor = static_cast<std::uint32_t>(fields[2]),
                    .ceiling = Duration{fields[3]},
                    .total = Duration{fields[4]},
                    .jitter = static_cast<Jitter>(fields[5]),
                    .jitter_percent = kLeftOut.jitter_percent};
  if (fields.size() > kRetryFields) retry.jitter_percent = static_cast<std::uint32_t>(fields[kRetryFields]);
  for (std::size_t i = kRetryFields + 1; i < fields.size(); ++i) retry.schedule.emplace_back(fields[i]);
  return retry;
}

std::string_view view(const Uuid& id) {
  return id.is_nil() ? std::string_view{} : std::string_view(reinterpret_cast<const char*>(id.bytes.data()), 16);
}

// Columns of read_run: lk_runs from 0, at its end the generation and state in which it was made; then the outcome; then
// lk_states.
constexpr int kMade = 15, kOutcome = 17, kLatest = 24;

void bind_open(Statement& to, int from, const Run& run) {
  static thread_local std::string packed;
  to.bind(from, run.generation).bind_blob(from + 1, pack_open(run, packed));
}

State read_outcome(const Statement& row) {
  const Instant at = from_ms(row.integer(kOutcome + 1));
  const auto effect = static_cast<Effect>(row.integer(kOutcome + 4));
  switch (static_cast<Status>(row.integer(kOutcome))) {
    case Status::completed:
      return Completed{at, Bytes(row.bytes(kOutcome + 2))};
    case Status::failed:
      return Failed{at, std::string(row.bytes(kOutcome + 3)), effect};
    default:
      return Cancelled{at, std::string(row.bytes(kOutcome + 3)), effect};
  }
}

}  // namespace

void bind_insert(Statement& insert, const Run& run, std::int64_t scope) {
  static thread_local std::vector<std::int64_t> retry;
  const RunHead& head = *run.head;
  insert.bind(1, seq_of(head.id))
      .bind_blob(2, std::span<const unsigned char>(head.id.bytes))
      .bind(3, scope)
      .bind_blob_or_null(4, head.key)
      .bind(6, pack_traits(head))
      .bind(7, head.priority)
      .bind_blob_or_null(9, pack_retry(head.retry, retry))
      .bind(10, head.window.count())
      .bind(11, head.lease.count())
      .bind(12, to_ms(head.created_at))
      .bind_blob_or_null(13, head.input)
      .bind_blob_or_null(14, head.caller)
      .bind_blob_or_null(15, view(head.claim));
  if (head.guarded()) {
    insert.bind_blob(5, std::span<const unsigned char>(head.key_hash));
  } else {
    insert.bind(5, std::nullopt);
  }
  if (head.fingerprint) {
    insert.bind_blob(8, std::span<const unsigned char>(*head.fingerprint));
  } else {
    insert.bind(8, std::nullopt);
  }
  bind_open(insert, 16, run);
}

void bind_state(Statement& put, const Run& run) {
  put.bind(1, seq_of(run.id()));
  bind_open(put, 2, run);
}

void bind_outcome(Statement& put, const Run& run) {
  LK_ASSERT(run.is_settled());
  std::string_view code, result;
  Effect effect = Effect::none;
  if (const auto* completed = run.as<Completed>()) {
    result = completed->result;
  } else if (const auto* failed = run.as<Failed>()) {
    code = failed->code, effect = failed->effect;
  } else if (const auto* cancelled = run.as<Cancelled>()) {
    code = cancelled->code, effect = cancelled->effect;
  }
  put.bind(1, seq_of(run.id()))
      .bind(2, run.generation)
      .bind(3, static_cast<int>(run.status()))
      .bind(4, to_ms(run.settled_at()))
      .bind_blob_or_null(5, result)
      .bind_text(6, code)
      .bind(7, static_cast<int>(effect))
      .bind_blob_or_null(8, run.last_error)
      .bind_blob_or_null(9, run.last_error_code);
}

std::int64_t row_scope(const Statement& row) { return row.integer(2); }

Run read_row(const Statement& row, const ScopeName& scope) {
  auto head = std::make_shared<RunHead>();
  head->id = read_uuid(row.bytes(1));
  head->tenant = scope.tenant;
  head->function = scope.function;
  head->key = row.bytes(3);
  if (const auto hash = row.bytes(4); hash.size() == head->key_hash.size())
    std::memcpy(head->key_hash.data(), hash.data(), hash.size());
  unpack_traits(row.integer(5), *head);
  head->priority = static_cast<std::int32_t>(row.integer(6));
  if (const auto fingerprint = row.bytes(7); fingerprint.size() == sizeof(Fingerprint))
    std::memcpy(head->fingerprint.emplace().data(), fingerprint.data(), fingerprint.size());
  head->retry = unpack_retry(row.bytes(8));
  head->window = Duration{row.integer(9)};
  head->lease = Duration{row.integer(10)};
  head->created_at = from_ms(row.integer(11));
  head->input = row.bytes(12);
  head->caller = row.bytes(13);
  head->claim = read_uuid(row.bytes(14));

  // Its latest open state, or the one it was made in.
  const int open = row.is_null(kLatest) ? kMade : kLatest + 1;
  Run run;
  run.head = std::move(head);
  run.generation = static_cast<std::uint32_t>(row.integer(open));
  unpack_open(row.bytes(open + 1), run);
  if (row.is_null(kOutcome)) return run;
  run.state = read_outcome(row);
  run.last_error = row.bytes(kOutcome + 5);
  run.last_error_code = row.bytes(kOutcome + 6);
  return run;
}

namespace {

void put_number(std::string& to, std::int64_t value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); }
void put_text(std::string& to, std::string_view text) {
  put_number(to, static_cast<std::int64_t>(text.size()));
  to.append(text);
}

struct Unpacker {
  std::string_view left;
  std::int64_t number() {
    std::int64_t value = 0;
    if (left.size() < sizeof value) return 0;
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = std::min<std::size_t>(static_cast<std::size_t>(number()), left.size());
    std::string value(left.substr(0, size));
    left.remove_prefix(size);
    return value;
  }
};

}  // namespace

std::string encode_duplicates(const Duplicates& seen) {
  std::string bytes;
  put_number(bytes, static_cast<std::int64_t>(seen.counts.size()));
  for (const DuplicateCount& count : seen.counts) {
    put_text(bytes, count.reason);
    put_number(bytes, static_cast<std::int64_t>(count.count));
    put_number(bytes, to_ms(count.first));
    put_number(bytes, to_ms(count.last));
  }
  put_number(bytes, static_cast<std::int64_t>(seen.latest.size()));
  for (const DuplicateCaller& caller : seen.latest) {
    put_number(bytes, to_ms(caller.at));
    put_text(bytes, caller.reason);
    put_text(bytes, caller.caller);
  }
  return bytes;
}

Duplicates decode_duplicates(std::string_view bytes) {
  Unpacker from{bytes};
  Duplicates seen;
  for (std::int64_t left = from.number(); left > 0 && !from.left.empty(); --left) {
    DuplicateCount count;
    count.reason = from.text();
    count.count = static_cast<std::uint64_t>(from.number());
    count.first = from_ms(from.number());
    count.last = from_ms(from.number());
    seen.counts.push_back(std::move(count));
  }
  for (std::int64_t left = from.number(); left > 0 && !from.left.empty(); --left) {
    DuplicateCaller caller;
    caller.at = from_ms(from.number());
    caller.reason = from.text();
    caller.caller = from.text();
    seen.latest.push_back(std::move(caller));
  }
  return seen;
}

}  // namespace latchkey
