#include "embedded/sqlite_transaction.hpp"

#include <sqlite3.h>

namespace latchkey {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

[[noreturn]] void raise(sqlite3* handle) { throw Failure("SQL_ERROR", sqlite3_errmsg(handle)); }

struct Bind {
  sqlite3_stmt* statement;
  int at;
  int operator()(std::nullptr_t) const { return sqlite3_bind_null(statement, at); }
  int operator()(std::int64_t value) const { return sqlite3_bind_int64(statement, at, value); }
  int operator()(double value) const { return sqlite3_bind_double(statement, at, value); }
  int operator()(const std::string& value) const {
    return sqlite3_bind_text64(statement, at, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
};

Value read_value(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return nullptr;
    default:
      break;
  }
  const void* bytes = sqlite3_column_blob(statement, column);
  return std::string(static_cast<const char*>(bytes),
                     static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

}  // namespace

bool is_ended(sqlite3* handle) { return sqlite3_get_autocommit(handle) != 0; }

void SqliteTransaction::execute(std::string_view sql, const Row& parameters) { query(sql, parameters); }

std::vector<Row> SqliteTransaction::query(std::string_view sql, const Row& parameters) {
  if (sqlite3_get_autocommit(handle_)) throw Failure("SQL_ERROR", "a statement has rolled back the transaction");
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &raw, &rest) != SQLITE_OK) raise(handle_);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
  if (std::string_view(rest, sql.data() + sql.size()).find_first_not_of(" \t\r\n;") != std::string_view::npos)
    throw Failure("SQL_ERROR", "one statement at a time");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (std::visit(Bind{raw, static_cast<int>(i) + 1}, parameters[i]) != SQLITE_OK) raise(handle_);
  std::vector<Row> rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    Row row;
    for (int column = 0; column < sqlite3_column_count(raw); ++column) row.push_back(read_value(raw, column));
    rows.push_back(std::move(row));
  }
  if (code != SQLITE_DONE) raise(handle_);
  return rows;
}

}  // namespace latchkey
