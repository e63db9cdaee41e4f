#include "cli/commands/migrate_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <istream>
#include <ostream>
#include <set>

#include "cli/terminal/table.hpp"
#include "migrate/live_servers.hpp"
#include "migrate/own_schema.hpp"

namespace latchkey {
namespace {

using namespace migrate;

bool asks_operator(const MigrateOptions& options) { return !options.yes && ::isatty(STDIN_FILENO) == 1; }

bool answers_yes(const std::string& question, const CliContext& context) {
  context.err << question << " [y/N] " << std::flush;
  std::string line;
  std::getline(context.in, line);
  return line == "y" || line == "yes";
}

// Without this check the requests of running servers would fail without a reason.
void require_no_servers(const MigrateOptions& options, std::string_view nothing_done) {
  if (options.force) return;
  const auto names = find_live_servers(options.database);
  if (names.empty()) return;
  throw MigrationError(Code::STORE_LOCKED,
                       fmt::format("{} running on this database ({}): stop {} first; {}",
                                   names.size() == 1 ? "a server is" : fmt::format("{} servers are", names.size()),
                                   fmt::join(names, ", "), names.size() == 1 ? "it" : "them", nothing_done));
}

// Refuses a schema that is newer than this binary, or is not Latchkey's, or is older and in use by servers.
void require_own_schema(const MigrateOptions& options, const CliContext& context) {
  const auto report = inspect_own_schema(options.database, context.random);
  if (!report) throw MigrationError(report.error().code, report.error().detail);
  if (report->state == SchemaState::older) return require_no_servers(options, "nothing was applied");
  if (const auto refusal = find_refusal(*report)) throw MigrationError(refusal->code, refusal->detail);
}

// The operator confirms each manual step of the plan. True when all are confirmed. `done` has the steps that were
// confirmed before.
bool confirm(const Migration& migration, std::set<std::string>& done, const CliContext& context) {
  for (const PlanStep& step : migration.plan.steps) {
    if (step.runs_down) break;
    if (done.contains(step.text)) continue;
    if (!answers_yes(fmt::format("{}: {}: done?", migration.label, plain(step.text, 200)), context)) return false;
    done.insert(step.text);
  }
  return answers_yes(
      fmt::format("take {} back (data-loss risk: {})?", migration.label, to_string(migration.plan.data_loss_risk)),
      context);
}

void require_confirmed(const Migration& migration, std::set<std::string>& done, const MigrateOptions& options,
                       const CliContext& context) {
  if (asks_operator(options) && !confirm(migration, done, context))
    throw MigrationError(Code::MOVE_REFUSED, migration.label + " was not taken back: not confirmed");
}

// Prints the manual steps that follow the down file.
void print_rest(const Migration& migration, const CliContext& context) {
  bool after = false;
  for (const PlanStep& step : migration.plan.steps) {
    if (after) context.err << fmt::format("latchkey: {}: now: {}\n", migration.label, plain(step.text, 200));
    after = after || step.runs_down;
  }
}

// One transaction for all migrations: half of the schema would not separate tenants.
void take_own_back(Target& target, const std::vector<Migration>& chosen, const MigrateOptions& options,
                   const CliContext& context) {
  std::set<std::string> done;
  require_no_servers(options, "nothing was taken back");
  for (const Migration& one : chosen) require_confirmed(one, done, options, context);
  run_down_together(target, chosen, make_run_settings(options, context, "taken_back"));
  for (const Migration& one : chosen) print_rest(one, context);
}

}  // namespace

int migrate_up(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_migrations(options);
  const auto target = open_database(options, context);
  if (options.is_own()) require_own_schema(options, context);
  bool any = false;
  RunSettings settings = make_run_settings(options, context, "applied");
  settings.on_done = [&any, done = settings.on_done](const Migration& one) { any = true, done(one); };
  (options.is_own() ? run_up_together : run_up)(*target, files, settings);
  if (!any && !options.json) context.out << "nothing to do\n";
  return 0;
}

int migrate_down(const MigrateOptions& options, const CliContext& context) {
  const auto files = read_migrations(options);
  const auto target = open_database(options, context);
  const auto chosen =
      choose_down(*target, files, {options.steps, options.to < 0 ? std::nullopt : std::optional(options.to)});
  if (chosen.empty()) {
    if (!options.json) context.out << "nothing to do\n";
    return 0;
  }
  for (const Migration& one : chosen) print_rollback(context.err, one);
  if (!options.yes && !asks_operator(options))
    throw MigrationError(Code::USAGE, "taking migrations back needs --yes where no operator can be asked");
  if (options.is_own()) return take_own_back(*target, chosen, options, context), 0;
  const RunSettings settings = make_run_settings(options, context, "taken_back");
  for (const Migration& one : chosen) {
    std::set<std::string>
        done;  // the steps of each migration are confirmed anew, because the one before has changed the database
    require_confirmed(one, done, options, context);
    run_down(*target, {one}, settings);
    print_rest(one, context);
  }
  return 0;
}

int migrate_accept(const MigrateOptions& options, const CliContext& context) {
  if (options.is_own())
    throw MigrationError(
        Code::USAGE,
        "Latchkey's own migrations belong to a build: use the build that applied them; for yours, name --dir");
  const auto files = read_migrations(options);
  const auto target = open_database(options, context);
  const std::string what = fmt::format(
      "the ledger accepts the present up file of {} as the applied one; nothing else is changed", options.version);
  if (!options.yes && !asks_operator(options))
    throw MigrationError(Code::USAGE, fmt::format("{}: that needs --yes where no operator can be asked", what));
  if (asks_operator(options) && !answers_yes(what + ": accept it?", context))
    throw MigrationError(Code::MOVE_REFUSED, "nothing was accepted: not confirmed");
  accept_one(*target, files, options.version, make_run_settings(options, context, "accepted"));
  return 0;
}

}  // namespace latchkey
