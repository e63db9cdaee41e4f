#include "sql/sql_runs.hpp"

#include "base/hex.hpp"
#include "model/decide.hpp"
#include "store/packing.hpp"

namespace latchkey {
namespace {

const std::vector<std::string> kStateNames{
    "seq",         "tenant",    "function",     "priority",        "status",         "origin",
    "generation",  "attempt",   "attempts_max", "attempts_total",  "fence",          "first_attempt_at",
    "waiting_for", "failures",  "at",           "lease_until",     "owner_lease_ms", "flags",
    "owner",       "opened_by", "last_error",   "last_error_code", "effect_key",     "result",
    "code",        "effect",    "deadline"};

Value number(std::int64_t value) { return std::to_string(value); }
Value instant(Instant at) { return number(to_ms(at)); }
Value bytes_or_null(std::string_view bytes) { return bytes.empty() ? Value{} : Value{as_hex(bytes)}; }
Value uuid_or_null(const Uuid& id) { return id.is_nil() ? Value{} : Value{to_string(id)}; }

std::string from_bytea(const Value& value) {
  std::string bytes;
  for (std::size_t i = 2; value && i < value->size(); i += 2)
    bytes += static_cast<char>(std::stoi(value->substr(i, 2), nullptr, 16));
  return bytes;
}
std::int64_t integer(const Value& value) { return value ? std::stoll(*value) : 0; }
Uuid uuid(const Value& value) { return value ? *parse_uuid(*value) : Uuid{}; }
Instant at(const Value& value) { return from_ms(integer(value)); }

State read_state(const std::vector<Value>& row) {
  const Instant when = at(row[14]);
  const std::int64_t flags = integer(row[17]);
  const auto effect = static_cast<Effect>(integer(row[25]));
  switch (static_cast<Status>(integer(row[4]))) {
    case Status::queued:
      return Queued{when, static_cast<QueuedBy>(flags)};
    case Status::running: {
      const bool taken = (flags & 2) != 0;
      return Running{.started_at = when,
                     .lease_until = at(row[15]),
                     .claim = taken ? Uuid{} : uuid(row[18]),
                     .session = taken ? uuid(row[18]) : Uuid{},
                     .lease = Duration{integer(row[16])},
                     .cancel_requested = (flags & 1) != 0};
    }
    case Status::in_doubt:
      return InDoubt{when};
    case Status::completed:
      return Completed{when, from_bytea(row[23])};
    case Status::failed:
      return Failed{when, row[24].value_or(""), effect};
    case Status::cancelled:
      break;
  }
  return Cancelled{when, row[24].value_or(""), effect};
}

std::string joined(const std::vector<std::string>& words, const std::string& before) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + before + word;
  return text;
}

std::string places(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) text += (i > 1 ? ", $" : "$") + std::to_string(i);
  return text;
}

}  // namespace

std::string as_hex(std::string_view bytes) {
  std::string text = "\\x";
  constexpr char kDigits[] = "0123456789abcdef";
  for (const unsigned char c : bytes) (text += kDigits[c >> 4]) += kDigits[c & 15];
  return text;
}

std::string as_uuid(const Digest& hash) {
  Uuid half;
  std::copy_n(hash.begin(), half.bytes.size(), half.bytes.begin());
  return to_string(half);
}

std::string state_list(const std::string& from) { return joined(kStateNames, "(" + from + ")."); }

std::vector<Value> state_columns(const Run& run) {
  Value when, lease, owners, flags = number(0), owner, outcome, why;
  Effect had = Effect::none;
  if (const auto* queued = run.as<Queued>()) {
    when = instant(queued->due_at), flags = number(static_cast<int>(queued->by));
  } else if (const auto* running = run.as<Running>()) {
    const bool taken = !running->session.is_nil();
    when = instant(running->started_at), lease = instant(running->lease_until), owners = number(running->lease.count());
    flags = number((running->cancel_requested ? 1 : 0) | (taken ? 2 : 0));
    owner = uuid_or_null(taken ? running->session : running->claim);
  } else if (const auto* doubt = run.as<InDoubt>()) {
    when = instant(doubt->since);
  } else if (const auto* completed = run.as<Completed>()) {
    when = instant(completed->at), outcome = bytes_or_null(completed->result);
  } else if (const auto* failed = run.as<Failed>()) {
    when = instant(failed->at), why = failed->code, had = failed->effect;
  } else if (const auto* cancelled = run.as<Cancelled>()) {
    when = instant(cancelled->at), why = cancelled->code, had = cancelled->effect;
  }
  const auto deadline = next_deadline(run);
  return {number(static_cast<std::int64_t>(uuid_counter(run.id()))),
          run.head->tenant,
          run.head->function,
          number(run.head->priority),
          number(static_cast<int>(run.status())),
          number(static_cast<int>(run.origin)),
          number(run.generation),
          number(run.attempt),
          number(run.attempts_max),
          number(run.attempts_total),
          number(static_cast<std::int64_t>(run.fence)),
          instant(run.first_attempt_at),
          number(run.waiting_for),
          number(run.failures),
          when,
          lease,
          owners,
          flags,
          owner,
          uuid_or_null(run.opened_by),
          bytes_or_null(run.last_error),
          bytes_or_null(run.last_error_code),
          run.effect_key == run.id() ? Value{} : Value{to_string(run.effect_key)},
          outcome,
          why,
          number(static_cast<int>(had)),
          deadline ? instant(*deadline) : Value{}};
}

void store_run(Sql& sql, const Run& run) {
  const RunHead& head = *run.head;
  std::vector<std::int64_t> packed;
  const Value seq = number(static_cast<std::int64_t>(uuid_counter(head.id)));
  const Value hash = head.guarded() ? Value{as_uuid(head.key_hash)} : Value{};
  Value print;
  if (head.fingerprint)
    print = as_hex({reinterpret_cast<const char*>(head.fingerprint->data()), head.fingerprint->size()});
  sql.rows("INSERT INTO latchkey.runs VALUES (" + places(17) + ")",
           {seq, to_string(head.id), head.tenant, head.function, bytes_or_null(head.key), hash,
            number(pack_traits(head)), number(head.priority), print, number(head.retry.retries),
            bytes_or_null(pack_retry(head.retry, packed)), number(head.window.count()), number(head.lease.count()),
            instant(head.created_at), bytes_or_null(head.input), bytes_or_null(head.caller), uuid_or_null(head.claim)});
  sql.rows("INSERT INTO latchkey.states VALUES (" + places(27) + ")", state_columns(run));
  if (hash)
    sql.rows("INSERT INTO latchkey.keys VALUES ($1, $2, $3) ON CONFLICT (hash) DO UPDATE SET seq = EXCLUDED.seq",
             {hash, head.tenant, seq});
}

Run load_run(Sql& sql, RunId id) {
  const std::vector<Value> seq{number(static_cast<std::int64_t>(uuid_counter(id)))};
  const auto head_row = sql.row(
      "SELECT id, tenant, function, key, traits, priority, fingerprint, retry, window_ms, lease_ms, created_at, input, "
      "caller, claim FROM latchkey.runs WHERE seq = $1",
      seq);
  auto head = std::make_shared<RunHead>();
  head->id = uuid(head_row[0]);
  head->tenant = *head_row[1];
  head->function = *head_row[2];
  head->key = from_bytea(head_row[3]);
  unpack_traits(integer(head_row[4]), *head);
  head->priority = static_cast<std::int32_t>(integer(head_row[5]));
  if (const std::string print = from_bytea(head_row[6]); !print.empty())
    std::copy_n(print.begin(), print.size(), head->fingerprint.emplace().begin());
  head->retry = unpack_retry(from_bytea(head_row[7]));
  head->window = Duration{integer(head_row[8])};
  head->lease = Duration{integer(head_row[9])};
  head->created_at = at(head_row[10]);
  head->input = from_bytea(head_row[11]);
  head->caller = from_bytea(head_row[12]);
  head->claim = uuid(head_row[13]);

  const auto row = sql.row("SELECT " + state_list("a") + " FROM latchkey.all_states a WHERE seq = $1", seq);
  Run run;
  run.origin = static_cast<Origin>(integer(row[5]));
  run.generation = static_cast<std::uint32_t>(integer(row[6]));
  run.attempt = static_cast<std::uint32_t>(integer(row[7]));
  run.attempts_max = static_cast<std::uint32_t>(integer(row[8]));
  run.attempts_total = static_cast<std::uint32_t>(integer(row[9]));
  run.fence = static_cast<Fence>(integer(row[10]));
  run.first_attempt_at = at(row[11]);
  run.waiting_for = static_cast<std::uint32_t>(integer(row[12]));
  run.failures = static_cast<std::uint32_t>(integer(row[13]));
  run.opened_by = uuid(row[19]);
  run.last_error = from_bytea(row[20]);
  run.last_error_code = from_bytea(row[21]);
  run.effect_key = row[22] ? uuid(row[22]) : head->id;
  run.state = read_state(row);
  run.head = std::move(head);
  return run;
}

std::optional<Run> find_latest(Sql& sql, const Digest& key_hash) {
  const Rows found = sql.rows(
      "SELECT r.id FROM latchkey.keys k JOIN latchkey.runs r ON r.seq = k.seq WHERE k.hash = $1", {as_uuid(key_hash)});
  if (found.empty()) return std::nullopt;
  return load_run(sql, uuid(found[0][0]));
}

Run moved_in_time(const Run& run, Duration by) {
  Run moved = run;
  RunHead head = *run.head;
  head.created_at += by;
  moved.head = std::make_shared<RunHead>(std::move(head));
  if (run.first_attempt_at != Instant{}) moved.first_attempt_at += by;
  struct Move {
    Duration by;
    void operator()(Queued& state) const { state.due_at += by; }
    void operator()(Running& state) const { state.started_at += by, state.lease_until += by; }
    void operator()(InDoubt& state) const { state.since += by; }
    void operator()(Completed& state) const { state.at += by; }
    void operator()(Failed& state) const { state.at += by; }
    void operator()(Cancelled& state) const { state.at += by; }
  };
  std::visit(Move{by}, moved.state);
  return moved;
}

Instant database_now(Sql& sql) {
  return from_ms(std::stoll(*sql.one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")));
}

}  // namespace latchkey
