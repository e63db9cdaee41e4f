// Connector: opens connections to the first host of the URL that accepts one, and sets up sessions that are ours alone.
// Used by the store's thread. Throws pg::Failure.
#pragma once

#include <memory>

#include "base/task.hpp"
#include "pg/connection.hpp"
#include "store/postgres/settings.hpp"

namespace latchkey::pg {

class Connector {
 public:
  Connector(const PostgresSettings& settings, SocketWaiters& waiters) : settings_(settings), waiters_(waiters) {}

  Task<std::unique_ptr<Connection>> open();
  // Sets the engine's session settings once and enables prepared statements. Behind a pooler it changes nothing: there
  // every transaction sets them (begin).
  Task<void> configure_session(Connection& connection);
  // Adds BEGIN, and the transaction's settings where the session has none.
  static void begin(Connection& connection);

 private:
  const PostgresSettings& settings_;
  SocketWaiters& waiters_;
};

}  // namespace latchkey::pg
