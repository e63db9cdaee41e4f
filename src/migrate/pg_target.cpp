#include "migrate/pg_target.hpp"

#include <fmt/format.h>

#include "migrate/catalog.sql.hpp"
#include "migrate/pg_connect.hpp"
#include "migrate/sql_script.hpp"
#include "pg/codec.hpp"

namespace latchkey::migrate {
namespace {

constexpr Oid kBoolean = 16;

std::string quote_ledger(const TargetSettings& settings) {
  return settings.ledger == Ledger::own ? "latchkey.migrations" : quote_name(settings.schema) + ".latchkey_migrations";
}

[[noreturn]] void stop(const pg::Failure& failure, const std::string& doing) {
  if (failure.lost)
    throw MigrationError(Code::STORE_UNAVAILABLE,
                         fmt::format("{}: the connection was lost; the transaction was rolled back", doing));
  const std::string_view why = failure.what();
  if (why.contains("during recovery"))
    throw MigrationError(Code::STORE_UNAVAILABLE,
                         fmt::format("{}: this server is a standby, read-only ({})", doing, why));
  throw MigrationError(
      Code::MIGRATION_FAILED,
      fmt::format("{}: {}{}", doing, failure.what(), failure.state.empty() ? "" : " (SQLSTATE " + failure.state + ")"));
}

// Adds PostgreSQL's detail and hint to the error: for example dependent objects, and what to do about them.
pg::Rows check_all(PGconn* handle, PGresult* result) {
  if (const auto status = PQresultStatus(result);
      status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
    PQclear(result);
    throw pg::Failure("0A000", "COPY from STDIN or to STDOUT cannot be used here: there is no client for its data",
                      false);
  }
  std::string more;
  for (const int field : {PG_DIAG_MESSAGE_DETAIL, PG_DIAG_MESSAGE_HINT})
    if (const char* text = PQresultErrorField(result, field)) more += std::string("; ") + text;
  try {
    return pg::check(handle, result);
  } catch (const pg::Failure& failure) {
    throw pg::Failure(failure.state, failure.what() + more, failure.lost);
  }
}

std::string cell(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return "null";
  const std::string text = PQgetvalue(result, row, column);
  if (PQftype(result, column) == kBoolean) return text == "t" ? "true" : "false";
  return text;
}

}  // namespace

PgTarget::PgTarget(TargetSettings settings, Random& random) : PgTarget(std::move(settings), random, "") {}

PgTarget::PgTarget(TargetSettings settings, Random& random, const std::string& database)
    : settings_(std::move(settings)),
      random_(random),
      ledger_(quote_ledger(settings_)),
      notices_(settings_.on_notice),
      handle_(connect_for_migrations(settings_.database, database)),
      cancel_(PQgetCancel(handle_.get()), &PQfreeCancel),
      scratch_database_(database) {
  notices_.listen(handle_.get());
  if (const auto why = find_too_old(PQserverVersion(handle_.get())); why && settings_.ledger == Ledger::own)
    throw MigrationError(Code::STORE_UNAVAILABLE, *why);
}

PgTarget::~PgTarget() {
  handle_.reset();
  if (!scratch_database_.empty()) drop_scratch();
}

void PgTarget::execute(const std::string& sql) { pg::check(handle_.get(), PQexec(handle_.get(), sql.c_str())); }

std::vector<std::vector<std::string>> PgTarget::query(const std::string& sql,
                                                      const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  for (const std::string& parameter : parameters) values.push_back(parameter.c_str());
  PGresult* const result = PQexecParams(handle_.get(), sql.c_str(), static_cast<int>(values.size()), nullptr,
                                        values.data(), nullptr, nullptr, 0);
  const pg::Rows owner = check_all(handle_.get(), result);
  std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(owner.size()));
  for (int row = 0; row < owner.size(); ++row)
    for (int column = 0; column < PQnfields(result); ++column)
      rows[static_cast<std::size_t>(row)].push_back(cell(result, row, column));
  return rows;
}

std::string PgTarget::encoding() {
  try {
    return query("SHOW server_encoding").at(0).at(0);
  } catch (const pg::Failure& failure) {
    stop(failure, "reading the encoding");
  }
}

// All names are qualified, including operators and types, here and in all statements on the ledger. The search_path is
// the role's own: an object of another user in it would otherwise run with the rights of this role.
bool PgTarget::has_schema(const std::string& name) {
  try {
    return query(
               "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) "
               "$1::pg_catalog.name",
               {name})
               .size() == 1;
  } catch (const pg::Failure& failure) {
    stop(failure, "looking for the schema");
  }
}

std::optional<std::string> PgTarget::find_missing_grant() {
  try {
    const auto missing = query(
        "SELECT pg_catalog.quote_ident(SESSION_USER::pg_catalog.text), r.rolname FROM pg_catalog.pg_roles r WHERE "
        "r.rolname OPERATOR(pg_catalog.=) ANY "
        "('{latchkey_engine,latchkey_tenant,latchkey_service}'::pg_catalog.name[]) "
        "AND NOT pg_catalog.pg_has_role(SESSION_USER, r.oid, 'MEMBER') AND EXISTS (SELECT FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace WHERE "
        "n.nspname OPERATOR(pg_catalog.=) 'latchkey'::pg_catalog.name AND "
        "c.relname OPERATOR(pg_catalog.=) 'migrations'::pg_catalog.name) ORDER BY r.oid");
    if (missing.empty()) return std::nullopt;
    std::string roles;
    for (const auto& row : missing) roles += (roles.empty() ? "" : ", ") + row[1];
    return fmt::format(
        "the role {0}, which the server connects as, is not a member of {1}: as a superuser or the role that set up "
        "the schema, run GRANT latchkey_engine, latchkey_tenant, latchkey_service TO {0};",
        missing[0][0], roles);
  } catch (const pg::Failure& failure) {
    stop(failure, "looking for the roles");
  }
}

bool PgTarget::has_ledger() {
  return query("SELECT pg_catalog.to_regclass($1::pg_catalog.text) IS NOT NULL", {ledger_})[0][0] == "true";
}

std::vector<Applied> PgTarget::read_ledger() {
  std::vector<Applied> ledger;
  try {
    if (!has_ledger()) return ledger;
    for (const auto& row :
         query(fmt::format("SELECT version, name, checksum, pg_catalog.to_char(applied_at AT TIME ZONE 'UTC', "
                           "'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM {} ORDER BY version",
                           ledger_)))
      ledger.push_back({std::stoll(row[0]), row[1], row[2], row[3]});
  } catch (const pg::Failure& failure) {
    if (failure.state == "42501")
      throw MigrationError(
          Code::FORBIDDEN,
          fmt::format(
              "{}; the role must own {}{}", failure.what(), ledger_,
              settings_.ledger == Ledger::own ? ", or be a member of latchkey_engine that inherits its rights" : ""));
    stop(failure, "reading " + ledger_);
  }
  return ledger;
}

std::vector<Fault> PgTarget::lint(const std::string& file, const std::string& script) {
  return lint_script(file, script);
}

void PgTarget::begin(Duration patience, const std::function<void()>& on_wait) {
  try {
    // Read committed, so that statements after the lock wait see the other runner's commit.
    execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SAVEPOINT latchkey_begin");
    watch_runner();
    // Latchkey's own migrations must not depend on the role's search_path and settings; a user's migrations do.
    if (settings_.ledger == Ledger::own)
      execute(
          "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL standard_conforming_strings = on; "
          "SET LOCAL quote_all_identifiers = off");
    if (query("SELECT pg_catalog.pg_try_advisory_xact_lock(7420, pg_catalog.hashtext($1::pg_catalog.text))",
              {ledger_})[0][0] != "true") {
      on_wait();
      execute(fmt::format("SET LOCAL lock_timeout = {}", std::max<std::int64_t>(patience.count(), 1)));
      query("SELECT pg_catalog.pg_advisory_xact_lock(7420, pg_catalog.hashtext($1::pg_catalog.text))", {ledger_});
      execute("SET LOCAL lock_timeout TO DEFAULT");
    }
    transaction_ = query("SELECT pg_catalog.pg_current_xact_id()")[0][0];
  } catch (const pg::Failure& failure) {
    roll_back();
    if (failure.state == "55P03")
      throw MigrationError(Code::MIGRATION_LOCKED,
                           fmt::format("another runner had the lock for {}", format_duration(patience)));
    stop(failure, "beginning a transaction");
  }
}

// The setting exists from PostgreSQL 14 on, and not on every system.
void PgTarget::watch_runner() {
  try {
    execute("SET LOCAL client_connection_check_interval = '1s'; RELEASE SAVEPOINT latchkey_begin");
  } catch (const pg::Failure& failure) {
    if (failure.lost) throw;
    execute("ROLLBACK TO SAVEPOINT latchkey_begin; RELEASE SAVEPOINT latchkey_begin");
  }
}

void PgTarget::apply(const std::string& file, const std::string& script) {
  file_ = file;
  for (const SqlStatement& statement : split_sql(script)) {
    const std::string where = fmt::format("{}:{}", file, statement.line);
    notices_.set_position(where);
    try {
      query(statement.text);  // executes one statement only, even if the script was split wrongly
    } catch (const pg::Failure& failure) {
      stop(failure, where);
    }
    if (PQtransactionStatus(handle_.get()) != PQTRANS_INTRANS)
      throw MigrationError(Code::MIGRATION_FAILED, where + ": the statement ended the migration's own transaction");
  }
  notices_.set_position("");
}

void PgTarget::record(const Migration& migration) {
  try {
    // The file may have changed the role.
    execute("RESET SESSION AUTHORIZATION; RESET ROLE");
    if (!has_ledger())
      execute(fmt::format(
          "CREATE TABLE {} (version bigint PRIMARY KEY, name pg_catalog.text NOT NULL, checksum "
          "pg_catalog.text NOT NULL, applied_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp())",
          ledger_));
    query(fmt::format(
              "INSERT INTO {} (version, name, checksum) VALUES ($1::bigint, $2::pg_catalog.text, $3::pg_catalog.text)",
              ledger_),
          {std::to_string(migration.version), migration.name, migration.checksum});
  } catch (const pg::Failure& failure) {
    stop(failure, fmt::format("{}: writing {}", migration.label, ledger_));
  }
}

void PgTarget::erase(const Migration& migration) {
  try {
    execute("RESET SESSION AUTHORIZATION; RESET ROLE");
    if (!has_ledger()) return;  // the script has dropped its schema
    query(fmt::format("DELETE FROM {} WHERE version OPERATOR(pg_catalog.=) $1::bigint", ledger_),
          {std::to_string(migration.version)});
  } catch (const pg::Failure& failure) {
    stop(failure, fmt::format("{}: writing {}", migration.label, ledger_));
  }
}

void PgTarget::amend(const Migration& migration) {
  try {
    query(fmt::format("UPDATE {} SET name = $2::pg_catalog.text, checksum = $3::pg_catalog.text WHERE version "
                      "OPERATOR(pg_catalog.=) $1::bigint",
                      ledger_),
          {std::to_string(migration.version), migration.name, migration.checksum});
  } catch (const pg::Failure& failure) {
    stop(failure, fmt::format("{}: writing {}", migration.label, ledger_));
  }
}

std::string PgTarget::ask(const std::string& query_text) {
  std::vector<std::string> answer;
  try {
    execute("SAVEPOINT latchkey_ask; SET LOCAL transaction_read_only = on");
    for (const auto& row : query(query_text)) answer.push_back(fmt::format("{}", fmt::join(row, "|")));
    execute("ROLLBACK TO SAVEPOINT latchkey_ask; RELEASE SAVEPOINT latchkey_ask");
  } catch (const pg::Failure& failure) {
    stop(failure, "the verification query failed");
  }
  return fmt::format("{}", fmt::join(answer, "\n"));
}

void PgTarget::commit() {
  try {
    if (query("SELECT pg_catalog.pg_current_xact_id()")[0][0] != transaction_)
      throw MigrationError(Code::MIGRATION_FAILED,
                           "a statement ended the migration's own transaction; check the database");
    // Deferred triggers run before the commit, so that a warning during the COMMIT is about the commit.
    notices_.set_position(std::exchange(file_, ""));
    execute("SET CONSTRAINTS ALL IMMEDIATE");
    notices_.set_position("");
    notices_.forget();
    execute("COMMIT");
    if (notices_.has_warned())
      throw MigrationError(Code::STORE_UNAVAILABLE,
                           "the commit may not have been replicated: its result is unknown; run it again");
    // The settings of this file must not apply to the next one.
    execute("DISCARD ALL");
  } catch (const pg::Failure& failure) {
    if (!failure.lost) stop(failure, "committing");
    throw MigrationError(Code::STORE_UNAVAILABLE,
                         "the connection was lost during the commit: its result is unknown; run it again");
  }
}

void PgTarget::roll_back() noexcept {
  if (PQtransactionStatus(handle_.get()) == PQTRANS_IDLE) return;
  PQclear(PQexec(handle_.get(), "ROLLBACK"));
}

std::string PgTarget::describe() {
  std::string text;
  try {
    // Compiling so large a statement takes far longer than executing it.
    execute("BEGIN READ ONLY; SET LOCAL search_path = ''; SET LOCAL jit = off");
    for (const auto& row : query(sql::catalog, {ledger_})) text += row[0] + "\n";
    execute("COMMIT");
  } catch (const pg::Failure& failure) {
    roll_back();
    stop(failure, "reading the catalog");
  }
  return text;
}

std::unique_ptr<Target> PgTarget::make_scratch() {
  const std::string name = fmt::format("latchkey_verify_{:016x}", random_.next());
  try {
    execute("CREATE DATABASE " + name);
  } catch (const pg::Failure& failure) {
    throw MigrationError(
        Code::SCRATCH_REFUSED,
        fmt::format("no scratch database can be made: {}; give the role CREATEDB, or the URL of another server",
                    failure.what()));
  }
  try {
    std::unique_ptr<PgTarget> scratch(new PgTarget(settings_, random_, name));
    if (settings_.ledger == Ledger::users && has_schema(settings_.schema))
      scratch->execute("CREATE SCHEMA IF NOT EXISTS " + quote_name(settings_.schema));
    return scratch;
  } catch (const MigrationError& failed) {
    PQclear(PQexec(handle_.get(), ("DROP DATABASE IF EXISTS " + name).c_str()));
    throw MigrationError(Code::SCRATCH_REFUSED, fmt::format("the scratch database cannot be used: {}", failed.what()));
  }
}

std::string PgTarget::scratch_name() const {
  return scratch_database_.empty() ? "" : "the scratch database " + scratch_database_;
}

void PgTarget::interrupt() noexcept {
  char why[256];
  if (cancel_) PQcancel(cancel_.get(), why, sizeof why);
}

void PgTarget::drop_scratch() noexcept {
  try {
    const PgHandle maker = connect_for_migrations(settings_.database);
    PQclear(PQexec(maker.get(), ("DROP DATABASE IF EXISTS " + scratch_database_ + " WITH (FORCE)").c_str()));
  } catch (const MigrationError&) {
    // The server is not reachable, so a database named latchkey_verify_… remains.
  }
}

}  // namespace latchkey::migrate
