// PgBouncer: a PgBouncer in transaction mode, owned by one test, in front of one PostgreSQL. Each transaction may use a
// different server connection.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/folder.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {

class PgBouncer {
 public:
  // Opens up to `pool` server connections per database and user. Returns when the pooler accepts connections.
  PgBouncer(int server_port, int pool, const std::vector<std::string>& users = {"latchkey"});
  ~PgBouncer();
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  std::string url(const std::string& database, const std::string& user = "latchkey") const;
  // Stops the pooler with all its connections, and starts it again on the same port.
  void restart();
  // Uses another server from the next transaction on. Client connections stay open.
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
