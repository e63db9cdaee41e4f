// `latchkey dlq list | show | acknowledge`: dead letters, what failed for good.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_dlq_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
