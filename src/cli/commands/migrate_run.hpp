// `latchkey migrate up | down | accept`: what changes a database. Throws MigrationError.
#pragma once

#include "cli/commands/migrate_options.hpp"

namespace latchkey {

int migrate_up(const MigrateOptions& options, const CliContext& context);
// Shows the plans first; on a terminal a person confirms them.
int migrate_down(const MigrateOptions& options, const CliContext& context);
// The way out of MIGRATION_CHANGED for whoever knows that the changed file means the same.
int migrate_accept(const MigrateOptions& options, const CliContext& context);

}  // namespace latchkey
