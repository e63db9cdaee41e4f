// Target: a database that migrations are applied to, with its ledger of what was applied. What fails is thrown as
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
  // What no file may hold, because a migration is one transaction.
  virtual std::vector<Fault> lint(const std::string& file, const std::string& script) = 0;

  // Begins the transaction that only one runner can have at a time. Waits up to `patience` for another one, after
  // calling `on_wait`; MIGRATION_LOCKED when it is still there then. What the ledger says inside it, is so until its
  // end.
  virtual void begin(Duration patience, const std::function<void()>& on_wait) = 0;
  // MIGRATION_FAILED with the file's line.
  virtual void apply(const std::string& file, const std::string& script) = 0;
  virtual void record(const Migration& migration) = 0;
  virtual void erase(const Migration& migration) = 0;
  // Its row has this file's name and checksum from now on.
  virtual void amend(const Migration& migration) = 0;
  // The answer to a query that can change nothing; see PlanCheck for its form.
  virtual std::string ask(const std::string& query) = 0;
  // STORE_UNAVAILABLE when it is not known whether it took place; running again finds out.
  virtual void commit() = 0;
  // Also when there is nothing to roll back.
  virtual void roll_back() noexcept = 0;

  // Everything in the database but data and ledger, one thing a line, sorted: two schemas are the same when these are.
  virtual std::string describe() = 0;
  // An empty database of the same kind, gone with the object. SCRATCH_REFUSED when none may be made.
  virtual std::unique_ptr<Target> make_scratch() = 0;
  // What a scratch database is called, for people; empty for another.
  virtual std::string scratch_name() const = 0;
  // From any thread: the statement that runs now, if one does, fails.
  virtual void interrupt() noexcept = 0;
};

// Where a ledger is.
enum class Ledger {
  own,    // latchkey.migrations
  users,  // latchkey_migrations in a schema of theirs
};

struct TargetSettings {
  std::string database;  // postgres://… or sqlite:FILE
  Ledger ledger = Ledger::users;
  std::string schema = "public";  // PostgreSQL: of the users' ledger
  // What the database says about a statement of theirs besides its answer, once each: FILE:LINE: WARNING: …
  std::function<void(const std::string&)> on_notice = [](const std::string&) {};
};

// Connects. USAGE for another kind of database; STORE_UNAVAILABLE; STORE_LOCKED when a server owns the SQLite file.
std::unique_ptr<Target> open_target(const TargetSettings& settings, Clock& clock, Random& random);

}  // namespace latchkey::migrate
