#include "pg/session_settings.hpp"

#include <fmt/format.h>

namespace latchkey::pg {
namespace {

constexpr std::initializer_list<Setting> kCommonSettings{
    {"search_path", "'pg_catalog, pg_temp'"},
    {"row_security", "'on'"},
    {"client_min_messages", "'warning'"},
    {"enable_seqscan", "'off'"},
    {"enable_hashjoin", "'off'"},
    {"enable_mergejoin", "'off'"},
    {"enable_bitmapscan", "'off'"},
    {"jit", "'off'"},
    {"synchronous_commit",
     // Not CASE x WHEN y: that would look up `=` on the search_path which this very statement replaces.
     "CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'remote_apply' "
     "THEN 'remote_apply' ELSE 'on' END"}};

}  // namespace

std::string make_settings(SettingScope scope, std::initializer_list<Setting> own) {
  std::string sql;
  for (const auto& settings : {own, kCommonSettings})
    for (const auto& [name, value] : settings)
      sql += fmt::format("{} pg_catalog.set_config('{}', {}, {})", sql.empty() ? "SELECT" : ",", name, value,
                         scope == SettingScope::transaction);
  return sql;
}

}  // namespace latchkey::pg
