// The lines with which `latchkey runs show` presents one run, for people.
#pragma once

#include <iosfwd>
#include <string>

#include "model/run.hpp"

namespace latchkey {

// `flags`: those that suggested commands need, such as " --data-dir DIR".
void print_run(std::ostream& out, const Run& run, const std::string& flags);

// The code of a failed or cancelled run. Without retries, the code of the only attempt says more than
// MAX_RETRIES_EXCEEDED: EXIT_3. Empty for other runs.
std::string code_of(const Run& run);

}  // namespace latchkey
