// Normalises the text of CREATE statements, so that statements of the same meaning are equal. Pure.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::migrate {

// Removes comments, insignificant spaces, and quotes around names that need none: SQLite stores the text as typed, and
// adds quotes when it rewrites a statement.
std::string normalise_sqlite(std::string_view sql);

}  // namespace latchkey::migrate
