#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/commands/commands.hpp"
#include "cli/commands/migrate_run.hpp"
#include "cli/commands/verify_interrupt.hpp"
#include "cli/shared_options.hpp"
#include "migrate/new_migration.hpp"
#include "migrate/sql_script.hpp"
#include "migrate/verify.hpp"

namespace latchkey {
namespace {

using namespace migrate;

int migrate_status(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_migrations(options);
  const auto entries = survey(files.migrations, open_database(options, context)->read_ledger());
  print_status(context.out, entries, options.as());
  for (const Fault& fault : files.faults) context.err << "latchkey: " << to_string(fault) << '\n';
  const auto is_applied = [](const Entry& entry) { return entry.state == MigrationState::applied; };
  return options.exit_code && !std::ranges::all_of(entries, is_applied) ? EXIT_PENDING : 0;
}

int migrate_verify(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_migrations(options);
  const auto target = open_database(options, context);
  VerifyInterrupt interrupt(context.err);
  try {
    verify(*target, files, interrupt.watch());
  } catch (const MigrationError&) {
    interrupt.die_if_interrupted();
    throw;
  }
  interrupt.die_if_interrupted();
  if (options.json)
    context.out << fmt::format("{{\"verified\":{}}}\n", files.migrations.size());
  else
    context.out << fmt::format("{} migration{}: up, down and up again lead to the same schema\n",
                               files.migrations.size(), files.migrations.size() == 1 ? "" : "s");
  return 0;
}

// Without a database, only those faults of the scripts are found that are faults in every database.
int migrate_plan(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_migrations(options);
  if (options.database.empty())
    require_faultless(&lint_for_any, files);
  else
    require_faultless(*open_database(options, context), files);
  print_plans(context.out, files, options.as());
  return 0;
}

int migrate_new(const MigrateOptions& options, const CliContext& context) {
  auto made = make_migration(options.dir, options.name, context.clock.now());
  if (!made) throw MigrationError(made.error().code, made.error().detail);
  print_made(context.out, *made, options.as());
  return 0;
}

void add_wait(CLI::App& command, MigrateOptions& options) {
  add_duration(command, "--wait", options.wait, "How long to wait for another running migration (default: 1m)");
}

void add_up(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command =
      add_migrate(migrate, "up", "Apply the pending migrations, oldest first", options, context, &migrate_up);
  add_database(*command, *options);
  add_number(*command, "--to", options->to, 1, "The last migration to apply (default: all)");
  command->add_flag("--force", options->force, "Apply Latchkey's own migrations although servers are running");
  add_wait(*command, *options);
  command->footer(
      "Examples:\n  latchkey migrate up --database postgres://latchkey@db/latchkey\n"
      "  latchkey migrate up --dir migrations --database sqlite:app.db");
}

void add_down(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command =
      add_migrate(migrate, "down", "Take back applied migrations, newest first", options, context, &migrate_down);
  add_database(*command, *options);
  CLI::Option* const steps = add_number(*command, "--steps", options->steps, 1, "Number of migrations (default: 1)");
  add_number(*command, "--to", options->to, 0, "Take back all migrations above this number")->excludes(steps);
  command->add_flag("--yes", options->yes, "The steps of the plan are done: do not ask");
  command->add_flag("--force", options->force,
                    "Take back Latchkey's own migrations although servers are running; their calls fail");
  add_wait(*command, *options);
  command->footer(
      "Examples:\n  latchkey migrate down --dir migrations --database postgres://app@db/app\n"
      "  latchkey migrate down --to 3 --yes --dir migrations --database sqlite:app.db");
}

void add_status(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command = add_migrate(migrate, "status", "List migrations: applied, pending, changed or unknown",
                                        options, context, &migrate_status);
  add_database(*command, *options);
  command->add_flag("--exit-code", options->exit_code, "Exit 3 unless all migrations are applied and unchanged");
  command->footer("Example:\n  latchkey migrate status --dir migrations --database postgres://app@db/app --json");
}

void add_verify(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command =
      add_migrate(migrate, "verify", "Run up, down and up again on a scratch database, and compare the schemas",
                  options, context, &migrate_verify);
  add_database(*command, *options);
  command->footer("Example:\n  latchkey migrate verify --dir migrations --database postgres://app@db/app");
}

void add_plan(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command =
      add_migrate(migrate, "plan", "Check the files and print their rollback plans", options, context, &migrate_plan);
  add_database(*command, *options);
  command->footer("Example:\n  latchkey migrate plan --dir migrations");
}

void add_new(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command =
      add_migrate(migrate, "new", "Create the three files of the next migration", options, context, &migrate_new);
  command->add_option("NAME", options->name, "Name with letters, digits, - and _, such as add_user_preferences")
      ->required();
  command->get_option("--dir")->required()->description("Folder of your migrations; created if it is missing");
  command->footer("Example:\n  latchkey migrate new add_user_preferences --dir migrations");
}

void add_accept(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command = add_migrate(migrate, "accept", "Accept a file that was changed after it was applied",
                                        options, context, &migrate_accept);
  add_number(*command, "NUMBER", options->version, 1, "Number of the migration")->required();
  add_database(*command, *options);
  command->add_flag("--yes", options->yes, "The file means the same as the applied one: do not ask");
  add_wait(*command, *options);
  command->footer("Example:\n  latchkey migrate accept 3 --yes --dir migrations --database postgres://app@db/app");
}

}  // namespace

void add_migrate_command(CLI::App& app, const CliContext& context) {
  CLI::App* const migrate = app.add_subcommand("migrate", "Apply, verify and take back schema migrations");
  migrate->require_subcommand(1);
  migrate->footer(R"(Examples:
  latchkey migrate status --database postgres://latchkey@db/latchkey
  latchkey migrate up --database postgres://latchkey@db/latchkey
  latchkey migrate new add_user_preferences --dir migrations
  latchkey migrate plan --dir migrations
  latchkey migrate verify --dir migrations --database sqlite:app.db)");
  for (const auto add : {&add_up, &add_down, &add_status, &add_verify, &add_plan, &add_new, &add_accept})
    add(*migrate, context);
}

}  // namespace latchkey
