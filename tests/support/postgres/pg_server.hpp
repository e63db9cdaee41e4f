// PgServer: the PostgreSQL that the tests of one program share. The first call of instance() starts it, and it stops
// with the program. Each test borrows its own database.
#pragma once

#include <string>
#include <vector>

#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {

class PgServer {
 public:
  static PgServer& instance();
  // Returns the URL of an empty database. Return it with give_back() after use.
  std::string borrow_database();
  void give_back(const std::string& url);
  // Lists inconsistencies: `settlements` must have exactly one row for each settled generation, and a run must have its
  // state in one table (blocks, outcomes or states). Returns an empty string if there are none. give_back() calls it.
  static std::string find_contradiction(PgClient& admin);
  // Deletes all rows of Latchkey's schema and resets its sequences. This is faster than a new migration.
  static void empty(const std::string& url);
  static void empty(PgClient& admin);
  std::string url(const std::string& database) const { return cluster_.url(database); }
  int port() const { return cluster_.port(); }

 private:
  PgServer() = default;

  PgCluster cluster_;
  int created_ = 0;
  std::vector<std::string> free_;
};

}  // namespace latchkey
