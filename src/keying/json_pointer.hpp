// JSON pointers (RFC 6901): the one value in a text that a template names. Pure; safe from any thread.
#pragma once

#include <string_view>

#include "keying/json_tree.hpp"

namespace latchkey {

// INVALID_ARGUMENT unless it is empty or starts with '/', with '~' only in ~0 and ~1.
Result<void> check_json_pointer(std::string_view pointer);

// The node that a good pointer names, nullptr when there is none, or when a name on the way stands twice.
const JsonNode* find_pointed(const JsonTree& tree, std::string_view pointer);

}  // namespace latchkey
