// PgBouncer: a pooler of the test's own in transaction mode, before one PostgreSQL: every transaction may get another
// of a few server connections.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/folder.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {

class PgBouncer {
 public:
  // `pool` server connections for each database and user. Returns when it accepts connections.
  PgBouncer(int server_port, int pool, const std::vector<std::string>& users = {"latchkey"});
  ~PgBouncer();
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  std::string url(const std::string& database, const std::string& user = "latchkey") const;
  // At once, with every connection through it; then started again on the same port.
  void restart();
  // Another server from the next transaction on; those who are connected to the pooler do not notice.
  void point_at(int server_port);

 private:
  void write_settings(int server_port);
  void start();
  void stop();

  const Folder folder_;
  const int pool_;
  const ReservedPort port_;
  pid_t pid_ = -1;
};

}  // namespace latchkey
