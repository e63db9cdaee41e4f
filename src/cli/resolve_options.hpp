// What a person says became of runs, as options: --outcome, --result, --note.
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
// USAGE or INVALID_JSON when they do not go together.
Result<Move> make_move(const ResolveOptions& options);

}  // namespace latchkey
