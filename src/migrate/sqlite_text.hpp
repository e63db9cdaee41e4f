// The text of CREATE statements, so written that two of the same meaning are the same. Pure.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::migrate {

// Without comments, spaces that mean nothing, and quotes around names that need none: SQLite keeps what was typed, and
// adds quotes where it rewrites it itself.
std::string normalise_sqlite(std::string_view sql);

}  // namespace latchkey::migrate
