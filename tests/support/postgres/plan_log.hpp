// PlanLog: how PostgreSQL carried out every statement, read from the log of a server that runs auto_explain. What was
// executed while a step was announced belongs to that step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {

// One look at a table or an index: rows that came out of it, and rows that were read only to be dropped.
struct PlanScan {
  std::string node;   // "Index Scan", …
  std::string table;  // or the index, under a bitmap
  double rows = 0;
};

struct SeenPlan {
  std::string step;
  std::string sql;
  std::vector<PlanScan> scans;
  std::vector<std::string> joins;  // "Nested Loop", "Hash Join", …
  double rows = 0;                 // read by all its scans
  double pages = 0;                // touched, in memory or not
  std::string outline;             // its nodes, a line each, with what they read
};

class PlanLog {
 public:
  // A server that explains what it is asked in databases whose connections do not opt out.
  PlanLog();
  std::string url(const std::string& database) const { return cluster_.url(database); }
  // Of a connection that leaves no plans: to fill tables by.
  std::string quiet_url(const std::string& database) const;
  int port() const { return cluster_.port(); }
  // What comes from here on belongs to this step.
  void announce(const std::string& step);
  // All since the last call. Ask when the statements are answered: their plans are written before their answers.
  std::vector<SeenPlan> read();

 private:
  PgCluster cluster_;
  std::unique_ptr<PgClient> herald_;
  std::size_t read_ = 0;
};

}  // namespace latchkey
