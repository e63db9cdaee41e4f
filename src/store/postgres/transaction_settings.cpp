#include "store/postgres/transaction_settings.hpp"

#include <fmt/format.h>

namespace latchkey::pg {
namespace {

constexpr std::initializer_list<Setting> kForAll{
    {"search_path", "'pg_catalog, pg_temp'"},
    {"row_security", "'on'"},
    {"client_min_messages", "'warning'"},
    {"enable_seqscan", "'off'"},
    {"enable_hashjoin", "'off'"},
    {"enable_mergejoin", "'off'"},
    {"enable_bitmapscan", "'off'"},
    {"jit", "'off'"},
    {"synchronous_commit",
     // Not CASE x WHEN y: its `=` would be looked for on the path that is only now left.
     "CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'remote_apply' "
     "THEN 'remote_apply' ELSE 'on' END"}};

}  // namespace

std::string make_settings(Lasting lasting, std::initializer_list<Setting> own) {
  std::string sql;
  for (const auto& settings : {own, kForAll})
    for (const auto& [name, value] : settings)
      sql += fmt::format("{} pg_catalog.set_config('{}', {}, {})", sql.empty() ? "SELECT" : ",", name, value,
                         lasting == Lasting::transaction);
  return sql;
}

}  // namespace latchkey::pg
