#include "cli/commands/migrate_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/shared_options.hpp"
#include "cli/terminal/table.hpp"

namespace latchkey {

using namespace migrate;

Collection read_migrations(const MigrateOptions& options) {
  Collection files;
  if (options.is_own()) {
    files = own_migrations();
  } else {
    auto read = read_folder(options.dir);
    if (!read) throw MigrationError(read.error().code, read.error().detail);
    files = std::move(*read);
  }
  if (options.to > 0 && std::ranges::find(files.migrations, options.to, &Migration::version) == files.migrations.end())
    throw MigrationError(Code::USAGE, fmt::format("--to {}: no migration has that number", options.to));
  return files;
}

std::unique_ptr<Target> open_database(const MigrateOptions& options, const CliContext& context) {
  if (options.database.empty())
    throw MigrationError(Code::USAGE,
                         "name the database: --database postgres://… or sqlite:FILE, or LATCHKEY_DATABASE");
  TargetSettings settings{.database = options.database, .schema = options.schema};
  if (options.is_own())
    settings.ledger = Ledger::own;
  else
    settings.on_notice = [&err = context.err](const std::string& text) {
      err << "latchkey: " << plain(text, 1000) << '\n' << std::flush;
    };
  return open_target(settings, context.clock, context.random);
}

RunSettings make_run_settings(const MigrateOptions& options, const CliContext& context, const std::string& state) {
  return {.to = options.to < 0 ? std::nullopt : std::optional(options.to),
          .patience = options.wait,
          .on_wait = [&context] { context.err << "latchkey: another migration is running: waiting\n"
                                              << std::flush; },
          .on_done = [&options, &context,
                      state](const Migration& one) { print_done(context.out, one, state, options.as()); }};
}

CLI::App* add_migrate(CLI::App& migrate, const std::string& name, const std::string& description,
                      const std::shared_ptr<MigrateOptions>& options, const CliContext& context, MigrateWork work) {
  CLI::App* const command = migrate.add_subcommand(name, description);
  command->add_option("--dir", options->dir, "Folder of your own migrations (default: Latchkey's own)");
  add_json(*command, options->json);
  command->callback([options, &context, work] {
    try {
      context.set_exit(work(*options, context));
    } catch (const MigrationError& stop) {
      // A database that a server or another migration uses is no failure: the caller can retry.
      context.report({stop.code, stop.what()}, stop.code == Code::STORE_LOCKED ? EXIT_BUSY : exit_code_of(stop.code));
    }
  });
  return command;
}

void add_database(CLI::App& command, MigrateOptions& options) {
  command.add_option("--database", options.database, "postgres://… or, with --dir, sqlite:FILE")
      ->envname("LATCHKEY_DATABASE");
  command.add_option("--schema", options.schema, "PostgreSQL: the schema of your ledger, latchkey_migrations")
      ->capture_default_str();
}

}  // namespace latchkey
