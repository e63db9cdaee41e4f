// `latchkey completion` and `latchkey man`, made from the tree of commands, so that they never lag behind it.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_completion_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
