// Writing a settings struct as JSON by its description: the form that the store has and that the API shows. Members
// that are not set are left out, in the description's order, so equal settings are equal texts. Pure.
#pragma once

#include <string>

#include "config/members.hpp"

namespace latchkey::config {

std::string write_members(const Describe& describe);

}  // namespace latchkey::config
