// The flags that the commands of `latchkey migrate` share, and the files and databases that they open. Errors are
// thrown as MigrationError; add_migrate() reports them.
#pragma once

#include <memory>
#include <string>

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"
#include "cli/terminal/migrate_report.hpp"
#include "migrate/runner.hpp"

namespace latchkey {

struct MigrateOptions {
  std::string database;
  std::string dir;  // empty: Latchkey's own migrations
  std::string schema = "public";
  std::string name;  // new: name of the migration
  Duration wait{60'000};
  std::int64_t to = -1;
  std::int64_t steps = 1;
  std::int64_t version = 0;  // accept: number of the migration
  bool yes = false;
  bool force = false;
  bool exit_code = false;
  bool json = false;

  bool is_own() const { return dir.empty(); }
  As as() const { return json ? As::json : As::text; }
};

// Reads the files. USAGE when `--to` is not the number of a migration (0 is allowed for `down`).
migrate::Collection read_migrations(const MigrateOptions& options);
// Opens the database of the flags. USAGE when none is named.
std::unique_ptr<migrate::Target> open_database(const MigrateOptions& options, const CliContext& context);
// `state`: the word that is printed for each finished migration.
migrate::RunSettings make_run_settings(const MigrateOptions& options, const CliContext& context,
                                       const std::string& state);

// Executes a command and returns the exit code.
using MigrateWork = int (*)(const MigrateOptions&, const CliContext&);
// Adds a command with --dir and --json.
CLI::App* add_migrate(CLI::App& migrate, const std::string& name, const std::string& description,
                      const std::shared_ptr<MigrateOptions>& options, const CliContext& context, MigrateWork work);
// Adds --database and --schema.
void add_database(CLI::App& command, MigrateOptions& options);

}  // namespace latchkey
