// `latchkey migrate up | down | status | verify | plan | new | accept`: the schema of Latchkey's own PostgreSQL store,
// or, with --dir, a user's.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_migrate_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
