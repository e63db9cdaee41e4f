// ServerIdentity: which PostgreSQL server this store talks to, by system identifier and timeline.
//
// After a failover or a restore the server may lack commits that the last one acknowledged. Then fences drawn there
// must not be drawn again and leases granted there do not count: the first store that connects advances the sequences
// and ends all leases, in one transaction. The store's thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/task.hpp"
#include "pg/connection.hpp"

namespace latchkey::pg {

class ServerIdentity {
 public:
  struct Events {
    std::function<Instant()> now;
    std::function<void()> on_leases_ended;  // a sweep has work now
    std::function<void()> on_other_server;  // what was cached of the last server's replies may not hold
  };

  explicit ServerIdentity(Events events) : events_(std::move(events)) {}

  // Compares the connection's server with the recorded one. Throws Failure.
  Task<void> check(Connection& connection, Duration reply_max);
  bool is(std::string_view identity) const { return identity_ == identity; }

 private:
  void observe(std::string_view identity);

  const Events events_;
  std::string identity_;  // the last server, once its sequences are known to have advanced
};

}  // namespace latchkey::pg
