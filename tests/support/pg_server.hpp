// PgServer: a PostgreSQL 15 of the tests' own, from Debian's package, on a free loopback port, in a temporary folder.
// One per test program, started when it is first asked for and stopped at its end.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/folder.hpp"

namespace latchkey {

class PgServer {
 public:
  static PgServer& instance();
  // The URL of an empty database; give it back when it is no longer used.
  std::string borrow_database();
  void give_back(const std::string& url);
  std::string url(const std::string& database) const;

 private:
  PgServer();
  ~PgServer();
  void start();
  void wait_until_ready();

  const Folder folder_;
  int port_ = 0;
  pid_t pid_ = -1;
  int made_ = 0;
  std::vector<std::string> free_;
};

}  // namespace latchkey
