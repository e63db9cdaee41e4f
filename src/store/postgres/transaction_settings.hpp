// What every transaction of Latchkey's own is held to, whatever a pooler's session was left with or the role's settings
// are:
// - An answer means that it is kept: nothing weaker than `on` is believed of synchronous_commit, and the warning that a
//   commit may not be replicated is heard. Waiting for more (remote_apply) is the operator's choice.
// - Plans must not depend on what the tables were like when they were last analysed: every statement is made for its
//   indexes.
// - Policies hold, and nothing of somebody else's is found by its name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace latchkey::pg {

enum class Lasting { transaction, session };

struct Setting {
  std::string_view name;
  std::string_view value;  // as SQL has it: 'off', $1
};

// SELECT set_config(…), …: of `own` first, then of what is the same for all.
std::string make_settings(Lasting lasting, std::initializer_list<Setting> own);

}  // namespace latchkey::pg
