#include "migrate/sqlite_target.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <set>

#include "migrate/sqlite_text.hpp"
#include "store/tables.hpp"

namespace latchkey::migrate {
namespace {

constexpr const char* kLedger = "latchkey_migrations";

std::string_view text_of(const char* text) { return text ? text : ""; }

// Refuses actions that a file must not do inside the migration's transaction.
int authorize(void* refused, int action, const char* first, const char* second, const char*, const char*) {
  auto& why = *static_cast<std::string*>(refused);
  if (action == SQLITE_TRANSACTION)
    why = fmt::format("`{}` would end the migration's own transaction: leave it out, each file is one already", first);
  else if (action == SQLITE_ATTACH || action == SQLITE_DETACH)
    why = "a migration is about one file: ATTACH and DETACH are refused";
  else if (action == SQLITE_PRAGMA && second != nullptr &&
           (text_of(first) == "foreign_keys" || text_of(first) == "journal_mode"))
    why = fmt::format("`PRAGMA {}` does nothing inside a transaction (foreign keys are checked at its end)", first);
  else
    return SQLITE_OK;
  return SQLITE_DENY;
}

class Authorizer {
 public:
  explicit Authorizer(Database& database) : database_(database) {
    sqlite3_set_authorizer(database.handle(), &authorize, &refused_);
  }
  ~Authorizer() { sqlite3_set_authorizer(database_.handle(), nullptr, nullptr); }
  Authorizer(const Authorizer&) = delete;
  Authorizer& operator=(const Authorizer&) = delete;
  std::string why() const { return refused_.empty() ? sqlite3_errmsg(database_.handle()) : refused_; }

 private:
  Database& database_;
  std::string refused_;
};

using Prepared = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

bool is_blank(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isspace(c) != 0; });
}

[[noreturn]] void stop(const TablesError& error) { throw MigrationError(error.code, error.what()); }

}  // namespace

SqliteTarget::SqliteTarget(std::string file, Clock& clock, Random& random)
    : file_(std::move(file)), clock_(clock), random_(random) {
  if (std::filesystem::exists(file_ + ".lock")) {  // a store, in which users may have their own tables
    auto lock = StoreLock::acquire(file_, std::chrono::seconds{5}, clock);
    if (!lock) throw MigrationError(lock.error().code, lock.error().detail);
    lock_ = std::move(*lock);
  }
}

SqliteTarget::~SqliteTarget() {
  database_.reset();
  std::error_code ignored;
  if (!scratch_folder_.empty()) std::filesystem::remove_all(scratch_folder_, ignored);
}

// Opens the database at the first call, so that a verification does not create the file.
Database& SqliteTarget::database() {
  if (database_) return *database_;
  try {
    database_ = std::make_unique<Database>(file_, nullptr, Access::write);
    database_->execute("PRAGMA foreign_keys = OFF");
    handle_ = database_->handle();
    return *database_;
  } catch (const TablesError& error) {
    stop(error);
  }
}

std::vector<std::vector<std::string>> SqliteTarget::query(const std::string& sql) {
  std::vector<std::vector<std::string>> rows;
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(database().handle(), sql.c_str(), -1, &raw, &rest);
  const Prepared statement(raw, &sqlite3_finalize);
  if (code != SQLITE_OK) fail_query();
  int step = 0;
  while ((step = sqlite3_step(raw)) == SQLITE_ROW) {
    auto& row = rows.emplace_back();
    for (int column = 0; column < sqlite3_column_count(raw); ++column) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw, column));
      row.emplace_back(text ? text : "null");
    }
  }
  if (step != SQLITE_DONE) fail_query();
  return rows;
}

void SqliteTarget::fail_query() {
  const bool busy = (sqlite3_errcode(database().handle()) & 0xff) == SQLITE_BUSY;
  throw MigrationError(busy ? Code::MIGRATION_LOCKED : Code::MIGRATION_FAILED, sqlite3_errmsg(database().handle()));
}

std::vector<Applied> SqliteTarget::read_ledger() {
  std::vector<Applied> ledger;
  if (!database_ && !std::filesystem::exists(file_)) return ledger;
  sqlite3_busy_timeout(database().handle(), 5000);
  if (query(fmt::format("SELECT 1 FROM sqlite_schema WHERE name = '{}'", kLedger)).empty()) return ledger;
  for (const auto& row :
       query(fmt::format("SELECT version, name, checksum, applied_at FROM {} ORDER BY version", kLedger)))
    ledger.push_back({std::stoll(row[0]), row[1], row[2], row[3]});
  return ledger;
}

// SQLite finds these faults while it parses; see authorize().
std::vector<Fault> SqliteTarget::lint(const std::string&, const std::string&) { return {}; }

void SqliteTarget::begin(Duration patience, const std::function<void()>& on_wait) {
  const auto try_for = [&](Duration span) {
    sqlite3_busy_timeout(database().handle(), static_cast<int>(span.count()));
    return sqlite3_exec(database().handle(), "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) & 0xff;
  };
  int code = try_for(Duration{0});
  if (code == SQLITE_BUSY) {
    on_wait();
    code = try_for(std::max(patience, Duration{1}));
  }
  if (code == SQLITE_BUSY)
    throw MigrationError(Code::MIGRATION_LOCKED,
                         fmt::format("another process had the file locked for {}", format_duration(patience)));
  if (code != SQLITE_OK) throw MigrationError(Code::STORE_UNAVAILABLE, sqlite3_errmsg(database().handle()));
  orphans_before_ = list_orphans();
}

// The rows that violate a foreign key, one per line, sorted. A key is named by its columns, because its number changes
// when another one is added. A key that cannot be checked, because its parent is not unique, is reported with SQLite's
// message.
std::vector<std::string> SqliteTarget::list_orphans() {
  std::vector<std::string> orphans;
  for (const auto& table : query("SELECT quote(name) FROM sqlite_schema WHERE type = 'table' ORDER BY name")) {
    const std::string check = fmt::format(
        "SELECT f.\"table\", f.\"rowid\", (SELECT group_concat(k.\"from\") FROM pragma_foreign_key_list({0}) k "
        "WHERE k.id = f.fkid), f.parent FROM pragma_foreign_key_check({0}) f",
        table[0]);
    try {
      for (const auto& row : query(check))
        orphans.push_back(fmt::format("{} row {}: {} in {}", row[0], row[1], row[2], row[3]));
    } catch (const MigrationError& stop) {
      if (stop.code != Code::MIGRATION_FAILED) throw;
      orphans.emplace_back(stop.what());
    }
  }
  std::ranges::sort(orphans);
  return orphans;
}

void SqliteTarget::apply(const std::string& file, const std::string& script) {
  const Authorizer authorizer(database());
  const char* at = script.c_str();
  while (*at != '\0') {
    sqlite3_stmt* raw = nullptr;
    const char* rest = nullptr;
    while (std::isspace(static_cast<unsigned char>(*at)) != 0) at += 1;
    const auto where = [&] { return fmt::format("{}:{}", file, 1 + std::count(script.c_str(), at, '\n')); };
    int code = sqlite3_prepare_v2(database().handle(), at, -1, &raw, &rest);
    const Prepared statement(raw, &sqlite3_finalize);
    while (code == SQLITE_OK && raw != nullptr && (code = sqlite3_step(raw)) == SQLITE_ROW) code = SQLITE_OK;
    if (code != SQLITE_OK && code != SQLITE_DONE)
      throw MigrationError(Code::MIGRATION_FAILED, fmt::format("{}: {}", where(), authorizer.why()));
    if (!database().in_transaction())
      throw MigrationError(Code::MIGRATION_FAILED, where() + ": the statement ended the migration's own transaction");
    at = rest;
  }
}

void SqliteTarget::record(const Migration& migration) {
  query(fmt::format(
      "CREATE TABLE IF NOT EXISTS {} (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, "
      "applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))",
      kLedger));
  // A name and a checksum have no quotes.
  query(fmt::format("INSERT INTO {} (version, name, checksum) VALUES ({}, '{}', '{}')", kLedger, migration.version,
                    migration.name, migration.checksum));
}

void SqliteTarget::erase(const Migration& migration) {
  query(fmt::format("DELETE FROM {} WHERE version = {}", kLedger, migration.version));
}

void SqliteTarget::amend(const Migration& migration) {
  query(fmt::format("UPDATE {} SET name = '{}', checksum = '{}' WHERE version = {}", kLedger, migration.name,
                    migration.checksum, migration.version));
}

std::string SqliteTarget::ask(const std::string& text) {
  const Authorizer authorizer(database());
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(database().handle(), text.c_str(), -1, &raw, &rest);
  const Prepared statement(raw, &sqlite3_finalize);
  const auto refuse = [](const std::string& why) {
    throw MigrationError(Code::MIGRATION_FAILED, "the verification query failed: " + why);
  };
  if (code != SQLITE_OK) refuse(authorizer.why());
  if (raw == nullptr || sqlite3_stmt_readonly(raw) == 0 || !(is_blank(rest) || text_of(rest) == ";"))
    refuse("it must be one statement that only reads");
  std::vector<std::string> answer;
  try {
    for (const auto& row : query(text)) answer.push_back(fmt::format("{}", fmt::join(row, "|")));
  } catch (const MigrationError& stopped) {
    refuse(stopped.what());
  }
  return fmt::format("{}", fmt::join(answer, "\n"));
}

void SqliteTarget::commit() {
  std::vector<std::string> made;
  std::ranges::set_difference(list_orphans(), orphans_before_, std::back_inserter(made));
  if (!made.empty())
    throw MigrationError(Code::MIGRATION_FAILED,
                         fmt::format("{} row{} would break a foreign key ({}{})", made.size(),
                                     made.size() == 1 ? "" : "s", made[0], made.size() > 1 ? ", …" : ""));
  try {
    database().execute("COMMIT");
  } catch (const TablesError& error) {
    stop(error);
  }
}

void SqliteTarget::roll_back() noexcept {
  if (database_ && database_->in_transaction())
    sqlite3_exec(database_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

std::string SqliteTarget::describe() {
  std::set<std::string> lines;
  for (const auto& row :
       query(fmt::format("SELECT type, name, tbl_name, coalesce(sql, 'by constraint') FROM sqlite_schema "
                         "WHERE tbl_name <> '{}' AND name <> 'sqlite_sequence'",
                         kLedger)))
    lines.insert(fmt::format("{} {} on {}: {}", row[0], row[1], row[2], normalise_sqlite(row[3])));
  for (const auto& row :
       query(fmt::format("SELECT m.name, c.cid, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk, c.hidden FROM "
                         "sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type IN ('table', 'view') "
                         "AND m.name NOT IN ('{}', 'sqlite_sequence')",
                         kLedger)))
    lines.insert(fmt::format("column {}", fmt::join(row, " ")));
  for (const char* pragma : {"user_version", "application_id"})
    lines.insert(fmt::format("{} {}", pragma, query(fmt::format("PRAGMA {}", pragma))[0][0]));
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::unique_ptr<Target> SqliteTarget::make_scratch() {
  std::error_code error;
  const auto folder =
      std::filesystem::temp_directory_path(error) / fmt::format("latchkey-verify-{:016x}", random_.next());
  if (error || !std::filesystem::create_directory(folder, error))
    throw MigrationError(Code::SCRATCH_REFUSED, "no scratch file can be made in " + folder.parent_path().string());
  auto scratch = std::make_unique<SqliteTarget>((folder / "scratch.db").string(), clock_, random_);
  scratch->scratch_folder_ = folder;
  return scratch;
}

std::string SqliteTarget::scratch_name() const {
  return scratch_folder_.empty() ? "" : "the scratch folder " + scratch_folder_.string();
}

void SqliteTarget::interrupt() noexcept {
  if (sqlite3* const handle = handle_) sqlite3_interrupt(handle);
}

}  // namespace latchkey::migrate
