// ReservedPort: a loopback port that is the test's until this object ends. A socket is bound to it that never listens:
// whoever connects is refused, the system gives it to nobody else, neither to a server that asks for any port nor to an
// outgoing connection (which might even meet itself there), and a server that the test starts may still listen at it,
// as often as it likes. It must say SO_REUSEADDR, as PostgreSQL and PgBouncer do.
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
  // As a URL names it.
  std::string host() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  int socket_ = -1;
  int number_ = 0;
};

}  // namespace latchkey
