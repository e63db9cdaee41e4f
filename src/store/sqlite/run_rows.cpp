#include "store/sqlite/run_rows.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "store/packing.hpp"
#include "store/sqlite/open_state.hpp"

namespace latchkey {
namespace {

std::string_view id_view(const Uuid& id) {
  return id.is_nil() ? std::string_view{} : std::string_view(reinterpret_cast<const char*>(id.bytes.data()), 16);
}

// Columns of read_run: lk_runs from 0, ending with the generation and state at the insert; then lk_outcomes; then
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
      .bind_blob_or_null(15, id_view(head.claim));
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

  // The latest open state, or the state at the insert.
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

}  // namespace latchkey
