// QueryPlanLog: the query plan of every executed statement, from the log of a server with auto_explain. A statement
// belongs to the step that was announced last.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {

// One scan of a table or an index. `rows` counts the returned rows and the filtered ones.
struct QueryPlanScan {
  std::string node;   // "Index Scan", …
  std::string table;  // or the index, in a bitmap scan
  double rows = 0;
};

struct QueryPlan {
  std::string step;
  std::string sql;
  std::vector<QueryPlanScan> scans;
  std::vector<std::string> joins;  // "Nested Loop", "Hash Join", …
  double rows = 0;                 // the rows of all scans
  double pages = 0;                // the accessed pages, in memory or not
  std::string outline;             // the nodes and their row counts, one per line
};

class QueryPlanLog {
 public:
  // Starts a server that logs the plans of all connections except those of quiet_url().
  QueryPlanLog();
  std::string url(const std::string& database) const { return cluster_.url(database); }
  // A URL for connections that log no plans, such as those that fill tables.
  std::string quiet_url(const std::string& database) const;
  int port() const { return cluster_.port(); }
  // Later statements belong to this step.
  void announce(const std::string& step);
  // The plans since the last call. Call it after the statements' replies: the server logs a plan before it replies.
  std::vector<QueryPlan> read();

 private:
  PgCluster cluster_;
  std::unique_ptr<PgClient> announcer_;
  std::size_t read_ = 0;
};

}  // namespace latchkey
