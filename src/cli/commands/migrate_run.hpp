// `latchkey migrate up | down | accept`: the commands that change a database. Each returns the exit code or throws
// MigrationError.
#pragma once

#include "cli/commands/migrate_options.hpp"

namespace latchkey {

int migrate_up(const MigrateOptions& options, const CliContext& context);
// Prints the plans first. On a terminal the operator confirms them.
int migrate_down(const MigrateOptions& options, const CliContext& context);
// Resolves MIGRATION_CHANGED for an operator who knows that the changed file means the same.
int migrate_accept(const MigrateOptions& options, const CliContext& context);

}  // namespace latchkey
