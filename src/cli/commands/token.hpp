// `latchkey token create | list | revoke`: a server's tokens. Needs a running server.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_token_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
