// JSON pointers (RFC 6901): a template names a value of the input by a pointer. Pure; safe from any thread.
#pragma once

#include <string_view>

#include "keying/json_tree.hpp"

namespace latchkey {

// INVALID_ARGUMENT unless the pointer is empty or starts with '/', with '~' only in ~0 and ~1.
Result<void> check_json_pointer(std::string_view pointer);

// The node that a valid pointer names. nullptr when there is no such node, or when a name on its path occurs twice.
const JsonNode* find_pointed(const JsonTree& tree, std::string_view pointer);

}  // namespace latchkey
