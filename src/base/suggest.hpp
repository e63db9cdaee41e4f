// Suggestions: the known name that is nearest to an unknown one. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey {

// None when every known name differs in more than a third of the letters.
std::optional<std::string> find_nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace latchkey
