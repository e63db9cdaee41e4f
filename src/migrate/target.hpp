// Target: a database to which migrations are applied, with its ledger of applied migrations. Errors are thrown as
// MigrationError. For one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "migrate/migration.hpp"

namespace latchkey::migrate {

// A row of the ledger.
struct Applied {
  std::int64_t version = 0;
  std::string name;
  std::string checksum;
  std::string applied_at;  // RFC 3339, by the database's clock
};

class Target {
 public:
  virtual ~Target() = default;

  // In the order of their numbers; empty when there is no ledger yet.
  virtual std::vector<Applied> read_ledger() = 0;
  // Reports statements that cannot be in a file, because a migration is one transaction.
  virtual std::vector<Fault> lint(const std::string& file, const std::string& script) = 0;

  // Begins the transaction that only one runner can have at a time. Waits up to `patience` for another runner, after
  // calling `on_wait`; then MIGRATION_LOCKED. Until its end, only this runner can change the ledger.
  virtual void begin(Duration patience, const std::function<void()>& on_wait) = 0;
  // MIGRATION_FAILED with the file's line.
  virtual void apply(const std::string& file, const std::string& script) = 0;
  virtual void record(const Migration& migration) = 0;
  virtual void erase(const Migration& migration) = 0;
  // Writes this file's name and checksum into its row.
  virtual void amend(const Migration& migration) = 0;
  // The answer to a query in a read-only transaction; see PlanCheck for its form.
  virtual std::string ask(const std::string& query) = 0;
  // STORE_UNAVAILABLE for an unknown commit; the next run finds its result.
  virtual void commit() = 0;
  // Also when there is nothing to roll back.
  virtual void roll_back() noexcept = 0;

  // The schema of the database, without the ledger: one object per line, sorted. Equal schemas have equal texts.
  virtual std::string describe() = 0;
  // An empty database of the same kind, dropped with the object. SCRATCH_REFUSED if it cannot be created.
  virtual std::unique_ptr<Target> make_scratch() = 0;
  // The name of a scratch database, for messages; empty for another database.
  virtual std::string scratch_name() const = 0;
  // From any thread: makes the statement that is running fail, if there is one.
  virtual void interrupt() noexcept = 0;
};

// The ledger's table.
enum class Ledger {
  own,    // latchkey.migrations
  users,  // latchkey_migrations in a schema of the user
};

struct TargetSettings {
  std::string database;  // postgres://… or sqlite:FILE
  Ledger ledger = Ledger::users;
  std::string schema = "public";  // PostgreSQL: of the users' ledger
  // Receives the database's messages about statements of the user, once each: FILE:LINE: WARNING: …
  std::function<void(const std::string&)> on_notice = [](const std::string&) {};
};

// Connects. USAGE for another kind of database; STORE_UNAVAILABLE; STORE_LOCKED when a server owns the SQLite file.
std::unique_ptr<Target> open_target(const TargetSettings& settings, Clock& clock, Random& random);

}  // namespace latchkey::migrate
