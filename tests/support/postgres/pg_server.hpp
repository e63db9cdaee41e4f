// PgServer: the PostgreSQL that the tests of one program share, started when it is first asked for and stopped at its
// end. Each test borrows a database of its own.
#pragma once

#include <string>
#include <vector>

#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {

class PgServer {
 public:
  static PgServer& instance();
  // The URL of an empty database; give it back when it is no longer used.
  std::string borrow_database();
  void give_back(const std::string& url);
  // Where `settlements` has not exactly one entry for each generation that was settled, or a run lies in two places
  // (blocks, outcomes and rows); empty: nowhere. Asked of every database that is given back.
  static std::string find_contradiction(PgClient& hand);
  // As Latchkey's schema was when it was set up there: quicker than setting it up anew.
  static void empty(const std::string& url);
  static void empty(PgClient& hand);
  std::string url(const std::string& database) const { return cluster_.url(database); }
  int port() const { return cluster_.port(); }

 private:
  PgServer() = default;

  PgCluster cluster_;
  int made_ = 0;
  std::vector<std::string> free_;
};

}  // namespace latchkey
