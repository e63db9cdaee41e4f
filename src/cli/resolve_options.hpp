// The options with which an operator states the outcome of runs: --outcome, --result, --note.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/cli_fwd.hpp"
#include "model/requests.hpp"

namespace latchkey {

struct ResolveOptions {
  std::string outcome;
  std::string result;
  std::string note;
};

struct ResolveHelp {
  std::vector<std::string> outcomes;
  std::string outcome;
  std::string note;
};
void add_resolve_options(CLI::App& command, ResolveOptions& options, const ResolveHelp& help);
// USAGE when an option does not fit the outcome, INVALID_JSON when the result is not JSON.
Result<Move> make_move(const ResolveOptions& options);

}  // namespace latchkey
