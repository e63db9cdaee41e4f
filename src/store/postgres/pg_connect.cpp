// Connections as the writers use them.
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

Task<std::unique_ptr<Connection>> PostgresStore::connect() {
  auto connection = co_await connector_.open();
  std::optional<Failure> failure;
  try {
    co_await identity_.check(*connection, settings_.reply_max);
    if (uses_prepared_statements_) co_await connector_.configure_session(*connection);
  } catch (const Failure& found) {
    failure.emplace(found.state, found.what(), true);  // any error here means that there is no connection
  }
  if (failure) throw *failure;
  co_return connection;
}

// The backend of a broken connection may still be inside its transaction and hold row locks. It is terminated only
// while it waits for its client (see the statement). The writer waits until it exits: take and sweep use SKIP LOCKED
// and would miss its rows.
Task<void> PostgresStore::terminate_orphaned_backend(Connection& connection, BatchExecution& execution) {
  const auto [pid, since] = *execution.backend;
  const Duration until = host_.elapsed() + kBackendExitTimeout;
  for (bool is_there = true; is_there;) {
    connection.add(sql().begin_plainly);
    connection.add(sql().reset_role);
    connection.add({sql().terminate_orphaned_backend, Params().add(pid).add(std::string_view(since))});
    connection.add(sql().commit);
    const auto results = co_await connection.run(settings_.reply_max);
    is_there = !results[results.size() - 2].empty() && host_.elapsed() < until && !waiters_.are_last();
    if (is_there) co_await host_.wait(kCoalesceRecheck);
  }
  // Reset only now: if this connection breaks too, the next one has to terminate the same backend.
  execution.backend.reset();
}

}  // namespace latchkey
