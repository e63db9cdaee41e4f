// The runner: applies migrations and rolls them back, one transaction each (Latchkey's own all in one), and reports the
// state of each.
//
// Every migration is one transaction with its row in the ledger and its plan's verification queries. If any of them
// fails, or the runner dies, the transaction is rolled back. The transaction reads the ledger again, and only one
// runner can have such a transaction, so several runners at once apply each migration once.
#pragma once

#include "migrate/target.hpp"

namespace latchkey::migrate {

enum class MigrationState {
  applied,
  pending,
  changed,       // applied, but the file has changed since
  unknown,       // applied, but there is no file
  out_of_order,  // pending, although a later one is applied
};
std::string_view to_string(MigrationState state);

struct Entry {
  std::int64_t version = 0;
  std::string label;
  MigrationState state = MigrationState::pending;
  std::string applied_at;
};

// Pure: the state of each migration.
std::vector<Entry> survey(const std::vector<Migration>& migrations, const std::vector<Applied>& ledger);
// The error that stops a runner: MIGRATION_CHANGED, MIGRATION_ORDER; none if it can continue.
std::optional<Error> find_obstacle(const std::vector<Entry>& entries);

struct RunSettings {
  std::optional<std::int64_t> to;  // up: the last one to apply
  Duration patience{60'000};       // how long to wait for another runner
  std::function<void()> on_wait = [] {};
  std::function<void(const Migration&)> on_done = [](const Migration&) {};
};

// Applies the pending migrations, oldest first. Throws MigrationError: MIGRATION_INVALID or PLAN_INVALID before any
// change, MIGRATION_FAILED or CHECK_FAILED for the migration that failed; those before it stay applied.
void run_up(Target& target, const Collection& files, const RunSettings& settings);

// The same in one transaction: all of them, or none.
void run_up_together(Target& target, const Collection& files, const RunSettings& settings);

// Accepts the changed file of an applied migration: writes its checksum into the ledger and executes nothing.
// MOVE_REFUSED unless its state is `changed`.
void accept_one(Target& target, const Collection& files, std::int64_t version, const RunSettings& settings);

// The migrations that `down` rolls back, newest first: `steps` of them, or all above `to`.
struct DownSelection {
  std::int64_t steps = 1;
  std::optional<std::int64_t> to;
};
std::vector<Migration> choose_down(Target& target, const Collection& files, const DownSelection& selection);
// Rolls these back. MIGRATION_ORDER if another runner has changed the ledger meanwhile.
void run_down(Target& target, const std::vector<Migration>& chosen, const RunSettings& settings);
// The same in one transaction: all of them, or none.
void run_down_together(Target& target, const std::vector<Migration>& chosen, const RunSettings& settings);

// Apply or roll back one migration inside the open transaction; the caller commits.
void apply_one(Target& target, const Migration& migration);
void take_back_one(Target& target, const Migration& migration);

// Throws if there are faults: PLAN_INVALID if all of them are in plans, else MIGRATION_INVALID. The error has them all.
void require_none(const std::vector<Fault>& faults);
// The same for the faults of the files and of their scripts.
using Lint = std::function<std::vector<Fault>(const std::string& file, const std::string& script)>;
void require_faultless(const Lint& lint, const Collection& files);
void require_faultless(Target& target, const Collection& files);

}  // namespace latchkey::migrate
