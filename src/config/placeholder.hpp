// Placeholders for secrets in the texts of a config: ${env:NAME} and ${file:PATH}. The store has them as written; a
// server substitutes them when it calls a function. `$${` is a plain `${`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "model/function.hpp"

namespace latchkey::config {

// None, or what is wrong: an unknown kind, a missing brace, an empty name.
std::optional<std::string> find_placeholder_fault(std::string_view text);
bool has_placeholder(std::string_view text);

// Reads the process's environment and files; paths that are relative start at `folder`. A trailing newline of a file is
// dropped. INVALID_ARGUMENT names the placeholder, never a value.
Result<std::string> substitute(std::string_view text, const std::string& folder);

// Calls back for each text of a definition that may have placeholders.
void for_each_text(const FunctionDefinition& function, const std::function<void(const std::string&)>& visit);
// The definition with all placeholders substituted; the error lists every placeholder that has no value here.
Result<FunctionDefinition> substitute(const FunctionDefinition& function, const std::string& folder);

}  // namespace latchkey::config
