// `latchkey runs list | show | cancel | retry`.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_runs_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
