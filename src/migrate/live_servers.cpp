#include "migrate/live_servers.hpp"

#include <fmt/format.h>

#include <set>

#include "migrate/migration_error.hpp"
#include "migrate/pg_connect.hpp"
#include "pg/codec.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::migrate {
namespace {

// A server shows itself once a second, for half of one. One is enough to refuse, but all of them are to be named.
constexpr int kLooks = 30, kLooksForAll = 25;

pg::Rows ask(const PgHandle& handle, const std::string& sql) {
  return pg::check(handle.get(), PQexec(handle.get(), sql.c_str()));
}

// Behind a pooler, too, a server has one session while it waits; it may be a new one. What a transaction has read of
// pg_stat_activity it would see for good.
void add_names(const PgHandle& handle, std::set<std::string>& names) {
  ask(handle, "SELECT pg_stat_clear_snapshot()");
  const pg::Rows rows =
      ask(handle,
          fmt::format("SELECT coalesce(nullif(a.application_name, ''), 'one without a name') || coalesce(' from ' || "
                      "host(a.client_addr), '') FROM ({}) present LEFT JOIN pg_stat_activity a ON a.pid = present.pid",
                      pg::sql().list_live_servers));
  for (int row = 0; row < rows.size(); ++row) names.emplace(rows.bytes(row, 0));
}

std::vector<std::string> look(const PgHandle& handle) {
  // Whoever is stopped amid this must not keep servers waiting.
  ask(handle,
      "BEGIN; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '10s'; "
      "SET LOCAL idle_in_transaction_session_timeout = '5s'");
  ask(handle, pg::sql().lock_presence);
  std::set<std::string> names;
  for (int i = 0; i < (names.empty() ? kLooks : kLooksForAll); ++i) {
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
    return look(handle);
  } catch (const pg::Failure& failure) {
    throw MigrationError(Code::STORE_UNAVAILABLE,
                         fmt::format("looking for running servers: {}; nothing was changed", failure.what()));
  }
}

}  // namespace latchkey::migrate
