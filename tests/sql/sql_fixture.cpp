#include "sql/sql_fixture.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/postgres/pg_server.hpp"
#include "support/wait_until.hpp"

namespace latchkey {

Sql::Sql(const std::string& url) : handle_(PQconnectdb(url.c_str()), &PQfinish) {
  if (PQstatus(handle_.get()) != CONNECTION_OK) throw SqlError("", PQerrorMessage(handle_.get()), "");
  PQsetNoticeProcessor(handle_.get(), [](void*, const char*) {}, nullptr);
}

Rows Sql::take(PGresult* taken) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(taken, &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    const auto field = [&](int code) {
      const char* text = PQresultErrorField(result.get(), code);
      return std::string(text ? text : "");
    };
    throw SqlError(field(PG_DIAG_SQLSTATE), PQerrorMessage(handle_.get()), field(PG_DIAG_MESSAGE_DETAIL));
  }
  Rows rows(static_cast<std::size_t>(PQntuples(result.get())));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (int j = 0; j < PQnfields(result.get()); ++j) {
      const int at = static_cast<int>(i);
      rows[i].push_back(PQgetisnull(result.get(), at, j) ? Value{} : Value{PQgetvalue(result.get(), at, j)});
    }
  return rows;
}

Rows Sql::rows(const std::string& sql, const std::vector<Value>& values) {
  if (values.empty()) return take(PQexec(handle_.get(), sql.c_str()));
  std::vector<const char*> texts;
  for (const Value& value : values) texts.push_back(value ? value->c_str() : nullptr);
  return take(PQexecParams(handle_.get(), sql.c_str(), static_cast<int>(texts.size()), nullptr, texts.data(), nullptr,
                           nullptr, 0));
}

std::vector<Value> Sql::row(const std::string& sql, const std::vector<Value>& values) {
  Rows found = rows(sql, values);
  if (found.empty()) throw SqlError("", "no row: " + sql, "");
  return std::move(found.front());
}

Value Sql::one(const std::string& sql, const std::vector<Value>& values) { return row(sql, values).at(0); }

void Sql::send(const std::string& sql) {
  if (!PQsendQuery(handle_.get(), sql.c_str())) throw SqlError("", PQerrorMessage(handle_.get()), "");
}

Rows Sql::fetch() {
  PGresult* const first = PQgetResult(handle_.get());
  while (PGresult* const more = PQgetResult(handle_.get())) PQclear(more);
  return take(first);
}

std::vector<std::string> Sql::notifications() {
  PQconsumeInput(handle_.get());
  std::vector<std::string> heard;
  while (PGnotify* const note = PQnotifies(handle_.get())) {
    heard.push_back(std::string(note->relname) + " " + note->extra);
    PQfreemem(note);
  }
  return heard;
}

SqlError refusal(Sql& sql, const std::string& statement, const std::vector<Value>& values) {
  try {
    sql.rows(statement, values);
  } catch (const SqlError& error) {
    return error;
  }
  ADD_FAILURE() << "was not refused: " << statement;
  return {"", "", ""};
}

std::vector<std::string> migration_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(LATCHKEY_SOURCE_DIR "/migrations"))
    if (entry.path().string().ends_with(".up.sql")) files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

void apply_migrations(Sql& sql) {
  for (const std::string& file : migration_files()) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    sql.run("BEGIN; " + text.str() + "; COMMIT");
  }
}

namespace {

// One database for all tests of a program: migrating takes longer than most of them.
const std::string& migrated_database() {
  static const std::string url = [] {
    std::string made = PgServer::instance().borrow_database();
    Sql sql(made);
    apply_migrations(sql);
    return made;
  }();
  return url;
}

void empty(Sql& sql) {
  sql.run(R"(DO $$
    DECLARE tables text; sequence regclass;
    BEGIN
      SELECT string_agg(oid::regclass::text, ', ') INTO tables FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND relkind = 'r'
        AND relname <> 'latches';
      EXECUTE 'TRUNCATE ' || tables;
      FOR sequence IN SELECT oid FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND relkind = 'S' LOOP
        EXECUTE format('ALTER SEQUENCE %s RESTART', sequence);
      END LOOP;
    END $$)");
}

}  // namespace

SqlTest::SqlTest() : url_(migrated_database()), admin(url_) {
  admin.run("SET search_path = public");  // the user's name is the schema's: its own tables would come first
}

SqlTest::~SqlTest() {
  // Sessions of the test's own may still be there, idle in a transaction.
  admin.run(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
      "pg_backend_pid()");
  empty(admin);
  for (const std::string& role : roles_) admin.run("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

std::string SqlTest::url_as(const std::string& role) const {
  const std::size_t from = url_.find("//") + 2;
  return std::string(url_).replace(from, url_.find('@') - from, role);
}

std::string SqlTest::make_role(const std::string& name, const std::string& options) {
  static int made = 0;
  roles_.push_back(name + "_" + std::to_string(++made));
  admin.run("CREATE ROLE " + roles_.back() + " LOGIN " + options);
  return roles_.back();
}

Sql SqlTest::service(const std::string& tenant) {
  const std::string role = make_role("service");
  admin.run("GRANT latchkey_service TO " + role);
  Sql session = connect(role);
  session.run("SET app.current_tenant = '" + tenant + "'");
  return session;
}

std::string SqlTest::bound_role(const std::string& tenant, const std::string& acts_as) {
  const std::string role = make_role("bound");
  admin.run("GRANT latchkey_tenant TO " + role);
  admin.rows("INSERT INTO latchkey.tenant_roles VALUES ($1, $2, $3)", {role, tenant, acts_as});
  return role;
}

void SqlTest::wait_until_blocked(int pid) {
  const std::string waits =
      "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " + std::to_string(pid);
  ASSERT_TRUE(wait_until([&] { return admin.one(waits) == "1"; })) << "the session never waited";
}

}  // namespace latchkey
