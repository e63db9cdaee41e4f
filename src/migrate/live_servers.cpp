#include "migrate/live_servers.hpp"

#include <fmt/format.h>

#include <set>

#include "migrate/migration_error.hpp"
#include "migrate/pg_connect.hpp"
#include "pg/codec.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::migrate {
namespace {

// A server announces itself once a second, for half a second. One server is enough to refuse, but the error names all.
constexpr int kQueriesMax = 30, kQueriesAfterFirst = 25;

pg::Rows ask(const PgHandle& handle, const std::string& sql) {
  return pg::check(handle.get(), PQexec(handle.get(), sql.c_str()));
}

// Behind a pooler, too, a server has one backend while it waits, possibly a new one. The snapshot is cleared because a
// transaction otherwise reads the same pg_stat_activity again.
void add_names(const PgHandle& handle, std::set<std::string>& names) {
  ask(handle, "SELECT pg_stat_clear_snapshot()");
  const pg::Rows rows =
      ask(handle,
          fmt::format("SELECT coalesce(nullif(a.application_name, ''), 'one without a name') || coalesce(' from ' || "
                      "host(a.client_addr), '') FROM ({}) present LEFT JOIN pg_stat_activity a ON a.pid = present.pid",
                      pg::sql().list_live_servers));
  for (int row = 0; row < rows.size(); ++row) names.emplace(rows.bytes(row, 0));
}

std::vector<std::string> list_servers(const PgHandle& handle) {
  // The timeout releases the lock if this process is stopped meanwhile, because servers wait for it.
  ask(handle,
      "BEGIN; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '10s'; "
      "SET LOCAL idle_in_transaction_session_timeout = '5s'");
  ask(handle, pg::sql().lock_presence);
  std::set<std::string> names;
  for (int i = 0; i < (names.empty() ? kQueriesMax : kQueriesAfterFirst); ++i) {
    ask(handle, "SELECT pg_sleep(0.1)");
    add_names(handle, names);
  }
  ask(handle, "ROLLBACK");
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::string> find_live_servers(const std::string& url) {
  const PgHandle handle = connect_for_migrations(url);
  try {
    return list_servers(handle);
  } catch (const pg::Failure& failure) {
    throw MigrationError(Code::STORE_UNAVAILABLE,
                         fmt::format("looking for running servers: {}; nothing was changed", failure.what()));
  }
}

}  // namespace latchkey::migrate
