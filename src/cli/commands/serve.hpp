// `latchkey serve`: the HTTP API on the store in the data directory.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_serve_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
