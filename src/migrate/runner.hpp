// The runner: applies migrations and takes them back, one transaction each (Latchkey's own all in one), and says how
// things stand.
//
// Every migration is applied in one transaction with its row in the ledger and its plan's verification queries: when
// any of that fails, or the runner dies, nothing of it is kept. The ledger is read again inside each of these
// transactions, and only one runner can have one: several at once apply each migration once.
#pragma once

#include "migrate/target.hpp"

namespace latchkey::migrate {

enum class Standing {
  applied,
  pending,
  changed,       // applied, but the file is another one now
  unknown,       // applied, but there is no file
  out_of_order,  // pending, although a later one is applied
};
std::string_view to_string(Standing standing);

struct Entry {
  std::int64_t version = 0;
  std::string label;
  Standing standing = Standing::pending;
  std::string applied_at;
};

// Pure.
std::vector<Entry> survey(const std::vector<Migration>& migrations, const std::vector<Applied>& ledger);
// What keeps a runner from going on: MIGRATION_CHANGED, MIGRATION_ORDER.
std::optional<Error> find_obstacle(const std::vector<Entry>& entries);

struct RunSettings {
  std::optional<std::int64_t> to;  // up: the last one to apply
  Duration patience{60'000};       // how long to wait for another runner
  std::function<void()> on_wait = [] {};
  std::function<void(const Migration&)> on_done = [](const Migration&) {};
};

// Applies what is pending, oldest first. Throws MigrationError: MIGRATION_INVALID or PLAN_INVALID before anything is
// done, MIGRATION_FAILED or CHECK_FAILED for the one that failed; those before it stay applied.
void run_up(Target& target, const Collection& files, const RunSettings& settings);

// The same in one transaction: all of them, or none.
void run_up_together(Target& target, const Collection& files, const RunSettings& settings);

// Takes the file of an applied migration for the one that was applied: the ledger has its checksum from now on, nothing
// else is done. MOVE_REFUSED unless it stands as changed.
void accept_one(Target& target, const Collection& files, std::int64_t version, const RunSettings& settings);

// Which `down` would take back, newest first: `steps` of them, or all above `to`.
struct DownWish {
  std::int64_t steps = 1;
  std::optional<std::int64_t> to;
};
std::vector<Migration> choose_down(Target& target, const Collection& files, const DownWish& wish);
// Takes these back. MIGRATION_ORDER when somebody else changed what is applied meanwhile.
void run_down(Target& target, const std::vector<Migration>& chosen, const RunSettings& settings);
// The same in one transaction: all of them, or none.
void run_down_together(Target& target, const std::vector<Migration>& chosen, const RunSettings& settings);

// Applies one inside a transaction that was begun; the caller commits.
void apply_one(Target& target, const Migration& migration);
void take_back_one(Target& target, const Migration& migration);

// PLAN_INVALID when all of them are in plans, else MIGRATION_INVALID, with all of them.
void require_none(const std::vector<Fault>& faults);
// The same for the files and what stands in their scripts.
using Lint = std::function<std::vector<Fault>(const std::string& file, const std::string& script)>;
void require_faultless(const Lint& lint, const Collection& files);
void require_faultless(Target& target, const Collection& files);

}  // namespace latchkey::migrate
