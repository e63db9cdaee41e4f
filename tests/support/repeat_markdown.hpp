// The repeat table as docs/repeats.md shows it.
#pragma once

#include <string>

namespace latchkey {

std::string write_repeat_table();

}  // namespace latchkey
