// The JSON Schema (draft-07) of a config object, from its description. Editors read it. Pure.
#pragma once

#include <string>

#include "config/members.hpp"

namespace latchkey::config {

// The schema object, without "$schema".
std::string write_schema(const Describe& describe, std::string_view title = "");

}  // namespace latchkey::config
