// A thin wrapper of SQLite's C interface: connections and prepared statements. Failures are thrown as TablesError with
// STORE_FULL or STORE_UNAVAILABLE, and the back end catches them. One thread at a time may use a connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/uuid.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace latchkey {

class Database;

// A prepared statement. Parameters count from 1, columns from 0. It resets itself after the last row.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, std::nullopt_t);
  // Bytes are not copied: they must live until step().
  Statement& bind_blob(int at, std::string_view bytes);
  Statement& bind_blob(int at, std::span<const unsigned char> bytes);
  // Empty becomes NULL.
  Statement& bind_blob_or_null(int at, std::string_view bytes);
  Statement& bind_text(int at, std::string_view text);

  // True while there is a row; resets after the last one.
  bool step();
  // For statements without rows.
  void run();
  void reset();

  std::int64_t integer(int column) const;
  std::string_view bytes(int column) const;  // valid until the next step
  bool is_null(int column) const;

 private:
  Database* database_;
  sqlite3_stmt* handle_ = nullptr;
};

// Resets a row source that is left before its end.
class Rows {
 public:
  explicit Rows(Statement& statement) : statement_(statement) {}
  ~Rows() { statement_.reset(); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

 private:
  Statement& statement_;
};

enum class Access { write, read };

class Database {
 public:
  Database(const std::string& file, const char* vfs, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql);
  Statement prepare(std::string_view sql) { return {*this, sql}; }
  bool in_transaction() const;
  sqlite3* handle() { return handle_; }
  // True if the latest failure is a full disk, or a file at its size limit (ulimit -f).
  bool lacks_room() const;
  [[noreturn]] void raise(const char* doing) const;

 private:
  sqlite3* handle_ = nullptr;
};

// The statement of that name in statements.sql.
std::string_view find_sql(std::string_view name);

Uuid read_uuid(std::string_view bytes);

}  // namespace latchkey
