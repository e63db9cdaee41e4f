// SqliteTransaction: the user's Transaction on the writer's connection.
#pragma once

#include <latchkey/latchkey.hpp>

struct sqlite3;

namespace latchkey {

class SqliteTransaction final : public Transaction {
 public:
  explicit SqliteTransaction(sqlite3* handle) : handle_(handle) {}
  void execute(std::string_view sql, const Row& parameters) override;
  std::vector<Row> query(std::string_view sql, const Row& parameters) override;

 private:
  sqlite3* handle_;
};

// True if no transaction is open on the connection any more.
bool is_ended(sqlite3* handle);

}  // namespace latchkey
