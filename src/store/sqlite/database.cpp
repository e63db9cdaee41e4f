#include "store/sqlite/database.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

#include "store/named_sql.hpp"
#include "store/sqlite/statements.sql.hpp"
#include "store/tables.hpp"

namespace latchkey {

std::string_view find_sql(std::string_view name) {
  static const NamedSql statements({sql::statements});
  return statements.find(name);
}

Uuid read_uuid(std::string_view bytes) {
  Uuid id;
  if (bytes.size() == id.bytes.size()) std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  return id;
}

Database::Database(const std::string& file, const char* vfs, Access access) {
  const int flags = access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (sqlite3_open_v2(file.c_str(), &handle_, flags, vfs) != SQLITE_OK) {
    const std::string why = handle_ ? sqlite3_errmsg(handle_) : "out of memory";
    sqlite3_close_v2(handle_);
    throw TablesError(Code::STORE_UNAVAILABLE, "cannot open " + file + ": " + why);
  }
  sqlite3_extended_result_codes(handle_, 1);
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) raise("execute");
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

bool Database::lacks_room() const {
  if ((sqlite3_errcode(handle_) & 0xff) == SQLITE_FULL) return true;
  // For writes only: after a failed sync the content of the file is not known.
  return sqlite3_extended_errcode(handle_) == SQLITE_IOERR_WRITE && sqlite3_system_errno(handle_) == EFBIG;
}

void Database::raise(const char* doing) const {
  const int code = sqlite3_errcode(handle_) & 0xff;
  throw TablesError(lacks_room()                                      ? Code::STORE_FULL
                    : code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? Code::STORE_FORMAT
                                                                      : Code::STORE_UNAVAILABLE,
                    std::string("SQLite, ") + doing + ": " + sqlite3_errmsg(handle_));
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  if (sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &handle_, nullptr) != SQLITE_OK)
    database.raise("prepare");
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), handle_(std::exchange(other.handle_, nullptr)) {}

Statement& Statement::bind(int at, std::int64_t value) {
  sqlite3_bind_int64(handle_, at, value);
  return *this;
}

Statement& Statement::bind(int at, std::nullopt_t) {
  sqlite3_bind_null(handle_, at);
  return *this;
}

Statement& Statement::bind_blob(int at, std::string_view bytes) {
  sqlite3_bind_blob64(handle_, at, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_blob(int at, std::span<const unsigned char> bytes) {
  return bind_blob(at, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Statement& Statement::bind_blob_or_null(int at, std::string_view bytes) {
  if (bytes.empty()) return bind(at, std::nullopt);
  return bind_blob(at, bytes);
}

Statement& Statement::bind_text(int at, std::string_view text) {
  sqlite3_bind_text64(handle_, at, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    try {
      database_->raise("step");
    } catch (...) {
      sqlite3_reset(handle_);
      throw;
    }
  }
  sqlite3_reset(handle_);
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() { sqlite3_reset(handle_); }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

std::string_view Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);
  return {static_cast<const char*>(data), data ? static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)) : 0};
}

bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

}  // namespace latchkey
