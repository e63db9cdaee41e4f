#include "moving/target.hpp"

#include <fmt/format.h>

#include <cstring>

#include "migrations/fault.hpp"
#include "store/postgres/places.hpp"

namespace latchkey::moving {

using migrations::Stop;
using pg::Params;
using pg::Rows;
using pg::Statement;

namespace {

// As a server's batches begin, but durable whatever the role's settings say: the file is given up for it.
constexpr const char* kBegin =
    "SELECT set_config('role', 'latchkey_engine', true), set_config('search_path', 'pg_catalog, pg_temp', true), "
    "set_config('lock_timeout', '10s', true), "
    "set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true), "
    "set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), "
    "set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)";
constexpr const char* kLock =
    "LOCK TABLE latchkey.runs, latchkey.blocks, latchkey.outcomes, latchkey.states, latchkey.keys, latchkey.waits, "
    "latchkey.duplicates, latchkey.dead_letters, latchkey.dead_letter_members, latchkey.dead_letter_steps, "
    "latchkey.tokens IN SHARE ROW EXCLUSIVE MODE";
constexpr const char* kContents =
    "SELECT coalesce(string_agg(name, ', '), '') FROM ("
    "SELECT 'runs' AS name WHERE EXISTS (SELECT FROM latchkey.runs) "
    "UNION ALL SELECT 'keys' WHERE EXISTS (SELECT FROM latchkey.keys) "
    "UNION ALL SELECT 'dead letters' WHERE EXISTS (SELECT FROM latchkey.dead_letters) "
    "UNION ALL SELECT 'tokens' WHERE EXISTS (SELECT FROM latchkey.tokens)) found";

// What a copy is known by in `batches`: no other batch can have this name, and no other copy has.
Uuid name_copy(const Summary& of) {
  const Digest digest = thread_sha256()
                            .add_prefixed("latchkey move")
                            .add_prefixed({reinterpret_cast<const char*>(of.hash.data()), of.hash.size()})
                            .finish();
  Uuid name;
  std::memcpy(name.bytes.data(), digest.data(), name.bytes.size());
  return name;
}

// Of what the URL says, not of the host that answered: another of several may, the next time.
std::string place_of(PGconn* connection) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfo(connection), &PQconninfoFree);
  const auto find = [&](std::string_view name) -> std::string {
    for (const PQconninfoOption* option = options.get(); option && option->keyword; ++option)
      if (option->keyword == name && option->val) return option->val;
    return "";
  };
  return fmt::format("{}:{}/{}", find("host"), find("port"), find("dbname"));
}

[[noreturn]] void stop(const pg::Failure& failure) {
  if (failure.state == "55P03")
    throw Stop(Code::STORE_LOCKED, "somebody writes to the database that is to be copied into: stop its servers");
  const Code code = failure.state == "53100" ? Code::STORE_FULL : Code::STORE_UNAVAILABLE;
  throw Stop(code, fmt::format("PostgreSQL: {}; nothing of the copy was kept", failure.what()));
}

}  // namespace

Target::Target(const std::string& url) : handle_(migrations::connect_for_migrations(url)) {
  place_ = place_of(handle_.get());
  PQsetNoticeReceiver(
      handle_.get(),
      [](void* warned, const PGresult* notice) {
        const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        if (severity && std::string_view(severity) == "WARNING") *static_cast<bool*>(warned) = true;
      },
      &warned_);
}

Rows Target::run(const Statement& statement) {
  const auto types = statement.params.types();
  const auto values = statement.params.values();
  const auto lengths = statement.params.lengths();
  const std::vector<int> formats(types.size(), 1);
  try {
    return pg::check(handle_.get(), PQexecParams(handle_.get(), statement.sql.c_str(), static_cast<int>(types.size()),
                                                 types.data(), values.data(), lengths.data(), formats.data(), 1));
  } catch (const pg::Failure& failure) {
    stop(failure);
  }
}

void Target::begin() {
  run({"BEGIN", {}});
  run({kBegin, {}});
  run({kLock, {}});
}

std::string Target::find_contents() { return std::string(run({kContents, {}}).bytes(0, 0)); }

bool Target::find_copy(const Summary& of) {
  return run({"UPDATE latchkey.batches SET at = at + 1 WHERE id = $1", Params().add(name_copy(of))}).touched() > 0;
}

void Target::name(const Summary& copy) {
  // In no time that purging comes to: by it a repeat finds the copy, however late.
  run({"INSERT INTO latchkey.batches (id, at) VALUES ($1, 9007199254740991)", Params().add(name_copy(copy))});
}

void Target::raise(const Marks& marks) {
  const auto set = [&](const std::string& sequence, std::int64_t least) {
    if (least <= 0) return;
    run({fmt::format("SELECT setval('latchkey.{0}', $1) FROM latchkey.{0} WHERE last_value <= $1", sequence),
         Params().add(least)});
  };
  // The first two are drawn by the thousand: the next thousand begins above these.
  set("counters", marks.counter);
  set("fences", marks.fence);
  set("clock", marks.clock_ms);
  set("purged", marks.purged);
}

Target::Kept Target::commit() {
  warned_ = false;
  try {
    pg::check(handle_.get(), PQexec(handle_.get(), "COMMIT"));
    return warned_ ? Kept::unknown : Kept::yes;
  } catch (const pg::Failure& failure) {
    return failure.lost || failure.state.empty() ? Kept::unknown : Kept::no;
  }
}

}  // namespace latchkey::moving
