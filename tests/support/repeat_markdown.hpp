// Writes the repeat table as Markdown, for docs/repeats.md.
#pragma once

#include <string>

namespace latchkey {

std::string write_repeat_table();

}  // namespace latchkey
