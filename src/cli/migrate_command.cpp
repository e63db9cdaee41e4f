#include "cli/migrate_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <istream>
#include <ostream>

#include "cli/migrate_report.hpp"
#include "cli/place.hpp"
#include "cli/table.hpp"
#include "migrations/own_schema.hpp"
#include "migrations/verify.hpp"

namespace latchkey {
namespace {

using namespace migrations;

struct MigrateOptions {
  std::string database;
  std::string dir;  // empty: Latchkey's own
  std::string schema = "public";
  Duration wait{60'000};
  std::int64_t to = -1;
  std::int64_t steps = 1;
  bool yes = false;
  bool json = false;

  bool is_own() const { return dir.empty(); }
  As as() const { return json ? As::json : As::text; }
};
using Options = std::shared_ptr<MigrateOptions>;

Collection read_files(const MigrateOptions& options) {
  if (options.is_own()) return own_migrations();
  auto files = read_folder(options.dir);
  if (!files) throw Stop(files.error().code, files.error().detail);
  return std::move(*files);
}

std::unique_ptr<Target> open(const MigrateOptions& options, const CliContext& context) {
  if (options.database.empty())
    throw Stop(Code::USAGE, "say which database: --database postgres://… or sqlite:FILE, or LATCHKEY_DATABASE");
  return open_target({.database = options.database,
                      .ledger = options.is_own() ? Ledger::own : Ledger::users,
                      .schema = options.schema},
                     context.clock, context.random);
}

RunSettings run_settings(const MigrateOptions& options, const CliContext& context, const std::string& state) {
  return {.to = options.to < 0 ? std::nullopt : std::optional(options.to),
          .patience = options.wait,
          .on_wait = [&context] { context.err << "latchkey: another runner is at it: waiting\n"
                                              << std::flush; },
          .on_done = [&options, &context,
                      state](const Migration& one) { print_done(context.out, one, state, options.as()); }};
}

// An older binary on a newer schema, or on what is no schema of Latchkey's at all.
void require_own_schema(const MigrateOptions& options, const CliContext& context) {
  if (!options.is_own()) return;
  const auto report = inspect_own_schema(options.database, context.random);
  if (!report) throw Stop(report.error().code, report.error().detail);
  if (report->state == SchemaState::older) return;
  if (const auto refusal = find_refusal(*report)) throw Stop(refusal->code, refusal->detail);
}

void up(const MigrateOptions& options, const CliContext& context) {
  const auto target = open(options, context);
  require_own_schema(options, context);
  bool any = false;
  RunSettings settings = run_settings(options, context, "applied");
  settings.on_done = [&any, done = settings.on_done](const Migration& one) { any = true, done(one); };
  try {
    run_up(*target, read_files(options), settings);
  } catch (const Stop& stop) {
    if (!options.is_own()) throw;
    throw Stop(stop.code, leave_out_known_roles(stop.what(), options.database));
  }
  if (!any && !options.json) context.out << "nothing to do\n";
}

bool says_yes(const std::string& question, const CliContext& context) {
  context.err << question << " [y/N] " << std::flush;
  std::string line;
  std::getline(context.in, line);
  return line == "y" || line == "yes";
}

// Every step that is prose is confirmed by the person who did it; true once all are.
bool confirm(const Migration& migration, const CliContext& context) {
  for (const PlanStep& step : migration.plan.steps) {
    if (step.runs_down) break;
    if (!says_yes(fmt::format("{}: {}: done?", migration.label, plain(step.text, 200)), context)) return false;
  }
  return says_yes(
      fmt::format("take {} back (data-loss risk: {})?", migration.label, to_string(migration.plan.data_loss_risk)),
      context);
}

// What is left to do once the down file has run.
void print_rest(const Migration& migration, const CliContext& context) {
  bool after = false;
  for (const PlanStep& step : migration.plan.steps) {
    if (after) context.err << fmt::format("latchkey: {}: now: {}\n", migration.label, plain(step.text, 200));
    after = after || step.runs_down;
  }
}

void down(const MigrateOptions& options, const CliContext& context) {
  const auto target = open(options, context);
  const DownWish wish{options.steps, options.to < 0 ? std::nullopt : std::optional(options.to)};
  const auto chosen = choose_down(*target, read_files(options), wish);
  if (chosen.empty() && !options.json) context.out << "nothing to do\n";
  const bool asks = !options.yes && ::isatty(STDIN_FILENO) == 1;
  for (const Migration& one : chosen) print_rollback(context.err, one);
  if (!chosen.empty() && !options.yes && !asks)
    throw Stop(Code::USAGE, "taking migrations back needs --yes where nobody can be asked");
  for (const Migration& one : chosen) {
    if (asks && !confirm(one, context))
      throw Stop(Code::MOVE_REFUSED, one.label + " was not taken back: not confirmed");
    run_down(*target, {one}, run_settings(options, context, "taken_back"));
    print_rest(one, context);
  }
}

void status(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_files(options);
  print_status(context.out, survey(files.migrations, open(options, context)->read_ledger()), options.as());
  for (const Fault& fault : files.faults) context.err << "latchkey: " << to_string(fault) << '\n';
}

void run_verify(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_files(options);
  verify(*open(options, context), files);
  if (options.json)
    context.out << fmt::format("{{\"verified\":{}}}\n", files.migrations.size());
  else
    context.out << fmt::format("{} migration{}: up, down and up again lead to the same schema\n",
                               files.migrations.size(), files.migrations.size() == 1 ? "" : "s");
}

void plan(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_files(options);
  if (options.database.empty())
    require_none(files.faults);  // whether a script fits depends on the database
  else
    require_faultless(*open(options, context), files);
  print_plans(context.out, files, options.as());
}

// A whole number; CLI11's own checks say a wrong one with the range of all doubles.
CLI::Option* add_number(CLI::App& command, const std::string& name, std::int64_t& into, std::int64_t least,
                        const std::string& description) {
  const auto read = [name, least, &into](const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, into);
    if (fault == std::errc{} && at == end && into >= least) return;
    throw CLI::ValidationError(name, fmt::format("`{}` is no whole number from {} on", plain(text, 40), least));
  };
  return command.add_option_function<std::string>(name, read, description)->type_name("NUMBER");
}

CLI::App* add(CLI::App& migrate, const std::string& name, const std::string& description, const Options& options,
              const CliContext& context, void (*work)(const MigrateOptions&, const CliContext&)) {
  CLI::App* const command = migrate.add_subcommand(name, description);
  command->add_option("--database", options->database, "postgres://… or, with --dir, sqlite:FILE")
      ->envname("LATCHKEY_DATABASE");
  command->add_option("--dir", options->dir, "Folder of your own migrations (default: Latchkey's own)");
  command->add_option("--schema", options->schema, "PostgreSQL: the schema of your ledger, latchkey_migrations")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &context, work] {
    try {
      work(*options, context);
      context.set_exit(0);
    } catch (const Stop& stop) {
      // A server that has the file, or another runner, is nothing broken: try again.
      context.report({stop.code, stop.what()}, stop.code == Code::STORE_LOCKED ? EXIT_BUSY : exit_code_of(stop.code));
    }
  });
  return command;
}

void add_up(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command = add(migrate, "up", "Apply what is pending, oldest first", options, context, &up);
  add_number(*command, "--to", options->to, 0, "The last one to apply (default: all)");
  add_duration(*command, "--wait", options->wait, "How long to wait for another runner (default: 1m)");
  command->footer(
      "Examples:\n  latchkey migrate up --database postgres://latchkey@db/latchkey\n"
      "  latchkey migrate up --dir migrations --database sqlite:app.db");
}

void add_down(CLI::App& migrate, const CliContext& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* const command = add(migrate, "down", "Take back what was applied, newest first", options, context, &down);
  CLI::Option* const steps = add_number(*command, "--steps", options->steps, 1, "How many (default: 1)");
  add_number(*command, "--to", options->to, 0, "Down to this number, which stays applied; 0: all")->excludes(steps);
  command->add_flag("--yes", options->yes, "The plan's steps are done: do not ask");
  add_duration(*command, "--wait", options->wait, "How long to wait for another runner (default: 1m)");
  command->footer(
      "Examples:\n  latchkey migrate down --dir migrations --database postgres://app@db/app\n"
      "  latchkey migrate down --to 3 --yes --dir migrations --database sqlite:app.db");
}

}  // namespace

void add_migrate_command(CLI::App& app, const CliContext& context) {
  CLI::App* const migrate = app.add_subcommand("migrate", "Numbered changes of a schema, and how they are taken back");
  migrate->require_subcommand(1);
  migrate->footer(R"(Examples:
  latchkey migrate status --database postgres://latchkey@db/latchkey
  latchkey migrate up --database postgres://latchkey@db/latchkey
  latchkey migrate plan --dir migrations
  latchkey migrate verify --dir migrations --database sqlite:app.db)");
  add_up(*migrate, context);
  add_down(*migrate, context);
  add(*migrate, "status", "What is applied, pending, changed or unknown", std::make_shared<MigrateOptions>(), context,
      &status)
      ->footer("Example:\n  latchkey migrate status --dir migrations --database postgres://app@db/app --json");
  add(*migrate, "verify", "Up, down and up again on a scratch database, and compare",
      std::make_shared<MigrateOptions>(), context, &run_verify)
      ->footer("Example:\n  latchkey migrate verify --dir migrations --database postgres://app@db/app");
  add(*migrate, "plan", "Check the rollback plans and show them", std::make_shared<MigrateOptions>(), context, &plan)
      ->footer("Example:\n  latchkey migrate plan --dir migrations");
}

}  // namespace latchkey
