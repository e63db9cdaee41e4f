// The files of the top-level folder migrations/, which the build embeds into the program.
#pragma once

#include <span>

namespace latchkey::migrate {

struct Embedded {
  const char* name;
  const char* text;
};

std::span<const Embedded> embedded();

}  // namespace latchkey::migrate
