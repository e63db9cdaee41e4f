// The members of a function's entry in a config, in both directions: YAML or JSON into a FunctionDefinition, and back
// into the JSON that the registry stores. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "config/members.hpp"
#include "model/function.hpp"

namespace latchkey::config {

// Describes all members, and the rules between them.
void describe(Members& members, FunctionDefinition& function);

// The stored form.
std::string to_json(const FunctionDefinition& function);
// From the stored form, or from the body of PUT /v1/functions/{name}: INVALID_ARGUMENT names every fault.
Result<FunctionDefinition> read_function(std::string_view name, std::string_view json);

// Every fault in one detail, for an API's error.
Error to_error(const std::vector<Fault>& faults, std::string_view file = "");

}  // namespace latchkey::config
