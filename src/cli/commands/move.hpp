// `latchkey move`: copies an embedded store into PostgreSQL, verifies the copy and marks the file as moved.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_move_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
