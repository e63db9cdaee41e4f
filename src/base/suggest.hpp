// Suggest: the nearest known name for one that is unknown. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey {

// None when nothing is near: more than a third of the letters would have to change.
std::optional<std::string> find_nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace latchkey
