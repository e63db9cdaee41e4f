// ReservedPort: a loopback port that the test owns while this object lives. The constructor binds a socket to it that
// never listens. The kernel therefore refuses connections to the port, and assigns it neither to a server that requests
// any port nor to an outgoing connection, which could connect to itself there. A server of the test can listen on the
// port, any number of times, if it sets SO_REUSEADDR, as PostgreSQL and PgBouncer do.
#pragma once

#include <string>

namespace latchkey {

class ReservedPort {
 public:
  ReservedPort();
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  int number() const { return number_; }
  // Host and port for a URL.
  std::string host() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  int socket_ = -1;
  int number_ = 0;
};

}  // namespace latchkey
