// The settings that every transaction of ours sets, whatever a pooled session or the role has set before:
// - A reply means that the commit is durable: synchronous_commit is at least `on`, and warnings reach the client,
// because
//   PostgreSQL warns when a commit may not be replicated. remote_apply stays, if the operator chose it.
// - Plans use the indexes that the statements were written for, whatever ANALYZE last saw.
// - Row-level security is on, and search_path finds no object of another schema.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace latchkey::pg {

enum class SettingScope { transaction, session };

struct Setting {
  std::string_view name;
  std::string_view value;  // an SQL expression: 'off', $1
};

// SELECT set_config(…), …: `own` first, then the settings above.
std::string make_settings(SettingScope scope, std::initializer_list<Setting> own);

}  // namespace latchkey::pg
