#include "transfer/target.hpp"

#include <fmt/format.h>

#include <cstring>

#include "migrate/migration_error.hpp"
#include "pg/dsn.hpp"
#include "pg/session_settings.hpp"
#include "store/postgres/run_layout.hpp"
#include "transfer/database_address.hpp"

namespace latchkey::transfer {

using migrate::MigrationError;
using pg::Params;
using pg::Rows;
using pg::Statement;

namespace {

// The settings of a server's batches, without their timeouts.
std::string begin_settings() {
  return pg::make_settings(pg::SettingScope::transaction, {{"role", "'latchkey_engine'"},
                                                           {"lock_timeout", "'10s'"},
                                                           {"statement_timeout", "'0'"},
                                                           {"idle_in_transaction_session_timeout", "'0'"}});
}
constexpr const char* kLock =
    "LOCK TABLE latchkey.runs, latchkey.blocks, latchkey.outcomes, latchkey.settlements, latchkey.states, "
    "latchkey.keys, latchkey.waits, latchkey.duplicates, latchkey.dead_letters, latchkey.dead_letter_members, "
    "latchkey.dead_letter_steps, "
    "latchkey.tokens IN SHARE ROW EXCLUSIVE MODE";
// Revoked tokens count as content, because the file's token would be valid again.
constexpr const char* kContents =
    "SELECT coalesce(string_agg(name, ', '), '') FROM ("
    "SELECT 'runs' AS name WHERE EXISTS (SELECT FROM latchkey.runs) "
    "UNION ALL SELECT 'keys' WHERE EXISTS (SELECT FROM latchkey.keys) "
    "UNION ALL SELECT 'dead letters' WHERE EXISTS (SELECT FROM latchkey.dead_letters) "
    "UNION ALL SELECT 'tokens' WHERE EXISTS (SELECT FROM latchkey.tokens t WHERE t.revoked_at IS NOT NULL OR NOT "
    "EXISTS (SELECT FROM unnest($1, $2) AS known(id, hash) WHERE known.id = t.id AND known.hash = t.secret_hash))) "
    "found";

// The id of a copy in `batches`. No other batch and no other copy has this id.
Uuid name_copy(const Summary& of) {
  const Digest digest = thread_sha256()
                            .add_prefixed("latchkey move")
                            .add_prefixed({reinterpret_cast<const char*>(of.hash.data()), of.hash.size()})
                            .finish();
  Uuid name;
  std::memcpy(name.bytes.data(), digest.data(), name.bytes.size());
  return name;
}

// The connection has the settings that the URL does not have, from the environment or a service file.
std::string address_of(const std::string& url, PGconn* connection) {
  auto settings = pg::read_settings(url).value_or(std::map<std::string, std::string>());
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfo(connection), &PQconninfoFree);
  for (const PQconninfoOption* option = options.get(); option && option->keyword; ++option)
    if (option->val) settings.try_emplace(option->keyword, option->val);
  return make_address(settings);
}

[[noreturn]] void stop(const pg::Failure& failure) {
  if (failure.state == "55P03")
    throw MigrationError(Code::STORE_LOCKED, "the target database is being written to: stop its servers");
  const Code code = failure.state == "53100" ? Code::STORE_FULL : Code::STORE_UNAVAILABLE;
  throw MigrationError(code, fmt::format("PostgreSQL: {}; the copy was rolled back", failure.what()));
}

}  // namespace

Target::Target(const std::string& url) : handle_(migrate::connect_for_migrations(url)) {
  address_ = address_of(url, handle_.get());
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
  // Read committed, so that queries after the lock wait see what was committed meanwhile.
  run({"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", {}});
  run({begin_settings(), {}});
  run({kLock, {}});
}

std::string Target::find_contents() { return find_contents_except({}); }

std::string Target::find_contents_except(const std::vector<TokenRecord>& tokens) {
  pg::Column id{pg::Type::text}, hash{pg::Type::bytes};
  for (const TokenRecord& token : tokens) {
    id.add(token.id);
    hash.add(token.secret_hash);
  }
  return std::string(run({kContents, Params().add(id).add(hash)}).bytes(0, 0));
}

void Target::remove_tokens() { run({"DELETE FROM latchkey.tokens", {}}); }

bool Target::find_copy(const Summary& of) {
  return run({"UPDATE latchkey.batches SET at = at + 1 WHERE id = $1", Params().add(name_copy(of))}).touched() > 0;
}

void Target::record_copy(const Summary& copy) {
  // A time that the purge never reaches, so that a repeated transfer finds the copy at any later time.
  run({"INSERT INTO latchkey.batches (id, at) VALUES ($1, 9007199254740991)", Params().add(name_copy(copy))});
}

void Target::raise(const Marks& marks) {
  const auto set = [&](const std::string& sequence, std::int64_t least) {
    if (least <= 0) return;
    run({fmt::format("SELECT setval('latchkey.{0}', $1) FROM latchkey.{0} WHERE last_value <= $1", sequence),
         Params().add(least)});
  };
  // Servers draw the first two by the thousand: the next thousand begins above these values.
  set("counters", marks.counter);
  set("fences", marks.fence);
  set("clock", marks.clock_ms);
  set("purged", marks.purged);
}

Target::CommitResult Target::commit() {
  warned_ = false;
  try {
    pg::check(handle_.get(), PQexec(handle_.get(), "COMMIT"));
    return warned_ ? CommitResult::unknown : CommitResult::committed;
  } catch (const pg::Failure& failure) {
    return failure.lost || failure.state.empty() ? CommitResult::unknown : CommitResult::rolled_back;
  }
}

}  // namespace latchkey::transfer
