// Reading a config object by its description. Every fault is collected: unknown members with the nearest known name,
// wrong values, missing members, and rules over several members. Pure.
#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/members.hpp"

namespace latchkey::config {

// `path` is the object's own: "functions.sync". A member with a fault leaves its field unchanged.
void read_members(const Node& node, const std::string& path, const Describe& describe, std::vector<Fault>& faults);

}  // namespace latchkey::config
