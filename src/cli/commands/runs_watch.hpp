// `latchkey runs watch`: a line whenever a run changes, until it is settled; without an ID, until no run is open.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_runs_watch(CLI::App& runs, const CliContext& context);

}  // namespace latchkey
