#include "store/postgres/connector.hpp"

#include <algorithm>

#include "pg/dsn.hpp"
#include "pg/resolver.hpp"
#include "pg/session_settings.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {
namespace {

// force_generic_plan: plans must not depend on the values of the first batch.
std::string engine_settings(SettingScope scope) {
  return make_settings(scope, {{"role", "'latchkey_engine'"},
                               {"lock_timeout", "'50ms'"},
                               {"plan_cache_mode", "'force_generic_plan'"},
                               {"statement_timeout", "'0'"},
                               {"DateStyle", "'ISO'"},
                               {"idle_in_transaction_session_timeout", "'5s'"}});
}

}  // namespace

Task<std::unique_ptr<Connection>> Connector::open() {
  const auto hosts = split_hosts(settings_.url);
  for (std::size_t i = 0;; ++i) {
    std::optional<Failure> failure;
    try {
      const Duration limit = std::min(hosts[i].connect_timeout, settings_.reply_max);
      const std::string conninfo = co_await resolve_host(waiters_, hosts[i].conninfo, limit);
      co_return co_await Connection::connect(waiters_, conninfo, limit);
    } catch (const Failure& found) {
      failure.emplace(found);
    }
    if (i + 1 == hosts.size()) throw *failure;
  }
}

Task<void> Connector::configure_session(Connection& connection) {
  connection.add(sql().find_process);
  const auto process = co_await connection.run(settings_.reply_max);
  if (!connection.is_served_by(process.back().integer(0, 0))) co_return;
  connection.add(engine_settings(SettingScope::session));
  co_await connection.run(settings_.reply_max);
  connection.enable_prepared_statements();
}

void Connector::begin(Connection& connection) {
  static const std::string settings = engine_settings(SettingScope::transaction);
  connection.add(sql().begin);
  if (!connection.uses_prepared_statements()) connection.add(settings);
}

}  // namespace latchkey::pg
