// What the commands of `latchkey migrate` share: their flags, and what is opened by them. What is wrong is thrown as
// MigrationError; add_migrate() reports it.
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
  std::string dir;  // empty: Latchkey's own
  std::string schema = "public";
  std::string name;  // new: of the migration
  Duration wait{60'000};
  std::int64_t to = -1;
  std::int64_t steps = 1;
  std::int64_t version = 0;  // accept: which
  bool yes = false;
  bool force = false;
  bool exit_code = false;
  bool json = false;

  bool is_own() const { return dir.empty(); }
  As as() const { return json ? As::json : As::text; }
};

// The files; USAGE when `--to` is no number of theirs (0 is, for `down`).
migrate::Collection read_migrations(const MigrateOptions& options);
// USAGE when no database is named.
std::unique_ptr<migrate::Target> open_database(const MigrateOptions& options, const CliContext& context);
// `state`: what is printed of each that is done.
migrate::RunSettings make_run_settings(const MigrateOptions& options, const CliContext& context,
                                       const std::string& state);

// What a command does; the exit code.
using MigrateWork = int (*)(const MigrateOptions&, const CliContext&);
// With --dir and --json.
CLI::App* add_migrate(CLI::App& migrate, const std::string& name, const std::string& description,
                      const std::shared_ptr<MigrateOptions>& options, const CliContext& context, MigrateWork work);
// --database and --schema.
void add_database(CLI::App& command, MigrateOptions& options);

}  // namespace latchkey
