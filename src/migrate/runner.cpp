#include "migrate/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "migrate/sql_script.hpp"

namespace latchkey::migrate {
namespace {

enum class Way { up, down };

// Transaction: rolls back in its destructor unless it was committed.
class Transaction {
 public:
  Transaction(Target& target, const RunSettings& settings) : target_(target) {
    target.begin(settings.patience, settings.on_wait);
  }
  ~Transaction() { target_.roll_back(); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() { target_.commit(); }

 private:
  Target& target_;
};

std::string ask(Target& target, const Migration& migration, const PlanCheck& check) {
  try {
    return target.ask(check.query);
  } catch (const MigrationError& stop) {
    if (stop.code != Code::MIGRATION_FAILED) throw;
    throw MigrationError(Code::CHECK_FAILED, fmt::format("{}:{}: {}", migration.plan_file, check.line, stop.what()));
  }
}

void require_answer(const Migration& migration, const PlanCheck& check, const std::string& expected,
                    const std::string& answer) {
  if (answer == expected) return;
  throw MigrationError(
      Code::CHECK_FAILED,
      fmt::format("{}:{}: the verification query answers `{}`, not `{}`; the migration was rolled back",
                  migration.plan_file, check.line, answer, expected));
}

// Runs the script between the plan's verification queries.
void run_checked(Target& target, const Migration& migration, Way way, const std::function<void()>& work) {
  std::vector<std::string> before;
  for (const PlanCheck& check : migration.plan.checks)
    before.push_back(check.unchanged ? ask(target, migration, check) : "");
  work();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const PlanCheck& check = migration.plan.checks[i];
    const auto& expected = way == Way::up ? check.after_up : check.after_rollback;
    if (!check.unchanged && !check.is_bare && !expected) continue;
    const std::string answer = ask(target, migration, check);
    if (check.unchanged) require_answer(migration, check, before[i], answer);
    if (expected) require_answer(migration, check, *expected, answer);
  }
}

const Migration* find_next(Target& target, const Collection& files, const RunSettings& settings) {
  const auto entries = survey(files.migrations, target.read_ledger());
  if (const auto obstacle = find_obstacle(entries)) throw MigrationError(obstacle->code, obstacle->detail);
  const auto next = std::ranges::find(entries, MigrationState::pending, &Entry::state);
  if (next == entries.end() || (settings.to && next->version > *settings.to)) return nullptr;
  return &*std::ranges::find(files.migrations, next->version, &Migration::version);
}

std::vector<std::string> labels_of(const std::vector<Entry>& entries, MigrationState state) {
  std::vector<std::string> labels;
  for (const Entry& entry : entries)
    if (entry.state == state) labels.push_back(entry.label);
  return labels;
}

void require_newest(Target& target, const Migration& one) {
  const auto ledger = target.read_ledger();
  if (ledger.empty() || ledger.back().version != one.version || ledger.back().checksum != one.checksum)
    throw MigrationError(
        Code::MIGRATION_ORDER,
        fmt::format("{} is no longer the newest applied migration: another runner has changed that", one.label));
}

bool is_plan(const Fault& fault) { return fault.file.ends_with(".yml") || fault.file.ends_with(".yaml"); }

}  // namespace

std::string_view to_string(MigrationState state) {
  switch (state) {
    case MigrationState::applied:
      return "applied";
    case MigrationState::pending:
      return "pending";
    case MigrationState::changed:
      return "changed";
    case MigrationState::unknown:
      return "unknown";
    case MigrationState::out_of_order:
      return "out_of_order";
  }
  return "";
}

std::vector<Entry> survey(const std::vector<Migration>& migrations, const std::vector<Applied>& ledger) {
  std::map<std::int64_t, Entry> entries;
  const std::int64_t newest = ledger.empty() ? 0 : ledger.back().version;
  for (const Migration& one : migrations)
    entries[one.version] = {one.version, one.label,
                            one.version < newest ? MigrationState::out_of_order : MigrationState::pending, ""};
  for (const Applied& row : ledger) {
    const auto file = std::ranges::find(migrations, row.version, &Migration::version);
    const MigrationState state = file == migrations.end()         ? MigrationState::unknown
                                 : file->checksum != row.checksum ? MigrationState::changed
                                                                  : MigrationState::applied;
    const std::string label = file == migrations.end() ? fmt::format("{:04}_{}", row.version, row.name) : file->label;
    entries[row.version] = {row.version, label, state, row.applied_at};
  }
  std::vector<Entry> list;
  for (auto& [version, entry] : entries) list.push_back(std::move(entry));
  return list;
}

std::optional<Error> find_obstacle(const std::vector<Entry>& entries) {
  if (const auto changed = labels_of(entries, MigrationState::changed); !changed.empty())
    return Error{Code::MIGRATION_CHANGED,
                 fmt::format("{}.up.sql: applied, and the file is another one now; put it back, and write what is to "
                             "change as a new migration",
                             fmt::join(changed, ".up.sql, "))};
  if (const auto unknown = labels_of(entries, MigrationState::unknown); !unknown.empty())
    return Error{Code::MIGRATION_ORDER,
                 fmt::format("{}: applied, but there is no such file here", fmt::join(unknown, ", "))};
  if (const auto late = labels_of(entries, MigrationState::out_of_order); !late.empty())
    return Error{Code::MIGRATION_ORDER,
                 fmt::format("{}: out of order, a later one is applied already; give it a number behind that",
                             fmt::join(late, ", "))};
  return std::nullopt;
}

void require_none(const std::vector<Fault>& faults) {
  if (faults.empty()) return;
  throw MigrationError(std::ranges::all_of(faults, is_plan) ? Code::PLAN_INVALID : Code::MIGRATION_INVALID,
                       fmt::format("{} fault{}\n{}", faults.size(), faults.size() == 1 ? "" : "s", to_string(faults)));
}

void require_faultless(const Lint& lint, const Collection& files) {
  std::vector<Fault> faults = files.faults;
  for (const Migration& one : files.migrations) {
    for (const auto& [file, script] : {std::pair(one.up_file(), one.up), std::pair(one.down_file(), one.down)}) {
      std::ranges::copy(lint(file, script), std::back_inserter(faults));
      // Otherwise the SQL that is written later would be a change of an applied file. A missing file is a fault
      // already.
      const bool is_missing = std::ranges::any_of(
          files.faults, [&](const Fault& fault) { return fault.file == file && fault.line == 0; });
      if (!is_missing && split_sql(script).empty())
        faults.push_back({file, 1, "has no statement: write the SQL (SELECT 1; if there is nothing to do)"});
    }
  }
  require_none(faults);
}

void require_faultless(Target& target, const Collection& files) {
  require_faultless([&](const std::string& file, const std::string& script) { return target.lint(file, script); },
                    files);
}

void apply_one(Target& target, const Migration& migration) {
  run_checked(target, migration, Way::up, [&] {
    target.apply(migration.up_file(), migration.up);
    target.record(migration);
  });
}

void take_back_one(Target& target, const Migration& migration) {
  run_checked(target, migration, Way::down, [&] {
    target.apply(migration.down_file(), migration.down);
    target.erase(migration);
  });
}

void run_up(Target& target, const Collection& files, const RunSettings& settings) {
  require_faultless(target, files);
  for (;;) {
    Transaction transaction(target, settings);
    const Migration* next = find_next(target, files, settings);
    if (next == nullptr) return;
    apply_one(target, *next);
    transaction.commit();
    settings.on_done(*next);
  }
}

void run_up_together(Target& target, const Collection& files, const RunSettings& settings) {
  require_faultless(target, files);
  Transaction transaction(target, settings);
  std::vector<const Migration*> applied;
  try {
    while (const Migration* next = find_next(target, files, settings)) {
      apply_one(target, *next);
      applied.push_back(next);
    }
  } catch (const MigrationError& stop) {
    throw MigrationError(stop.code, fmt::format("nothing was applied: {}", stop.what()));
  }
  if (applied.empty()) return;
  transaction.commit();
  for (const Migration* one : applied) settings.on_done(*one);
}

void accept_one(Target& target, const Collection& files, std::int64_t version, const RunSettings& settings) {
  Transaction transaction(target, settings);
  const auto entries = survey(files.migrations, target.read_ledger());
  const auto entry = std::ranges::find(entries, version, &Entry::version);
  if (entry == entries.end() || entry->state != MigrationState::changed)
    throw MigrationError(
        Code::MOVE_REFUSED,
        fmt::format("{}: only a file that changed since it was applied can be accepted",
                    entry == entries.end() ? fmt::format("there is no {}", version)
                                           : fmt::format("{} is {}", entry->label, to_string(entry->state))));
  const Migration& one = *std::ranges::find(files.migrations, version, &Migration::version);
  target.amend(one);
  transaction.commit();
  settings.on_done(one);
}

std::vector<Migration> choose_down(Target& target, const Collection& files, const DownSelection& selection) {
  require_faultless(target, files);
  const auto entries = survey(files.migrations, target.read_ledger());
  std::vector<Migration> chosen;
  for (const Entry& entry : entries | std::views::reverse) {
    if (entry.state == MigrationState::pending || entry.state == MigrationState::out_of_order) continue;
    const bool wanted = selection.to ? entry.version > *selection.to : std::ssize(chosen) < selection.steps;
    if (!wanted) break;
    // Only the chosen migrations are checked: the state of the others does not matter.
    if (const auto obstacle = find_obstacle({entry})) throw MigrationError(obstacle->code, obstacle->detail);
    chosen.push_back(*std::ranges::find(files.migrations, entry.version, &Migration::version));
  }
  return chosen;
}

void run_down(Target& target, const std::vector<Migration>& chosen, const RunSettings& settings) {
  for (const Migration& one : chosen) {
    Transaction transaction(target, settings);
    require_newest(target, one);
    take_back_one(target, one);
    transaction.commit();
    settings.on_done(one);
  }
}

void run_down_together(Target& target, const std::vector<Migration>& chosen, const RunSettings& settings) {
  if (chosen.empty()) return;
  Transaction transaction(target, settings);
  try {
    for (const Migration& one : chosen) {
      require_newest(target, one);
      take_back_one(target, one);
    }
  } catch (const MigrationError& stop) {
    throw MigrationError(stop.code, fmt::format("{}; nothing was taken back", stop.what()));
  }
  transaction.commit();
  for (const Migration& one : chosen) settings.on_done(one);
}

}  // namespace latchkey::migrate
