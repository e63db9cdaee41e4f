#include "migrations/target.hpp"

#include "migrations/pg_target.hpp"
#include "migrations/sqlite_target.hpp"

namespace latchkey::migrations {

std::unique_ptr<Target> open_target(const TargetSettings& settings, Clock& clock, Random& random) {
  const std::string& url = settings.database;
  if (url.starts_with("postgres://") || url.starts_with("postgresql://"))
    return std::make_unique<PgTarget>(settings, random);
  if (!url.starts_with("sqlite:") || url.size() == 7)
    throw Stop(Code::USAGE, "--database is postgres://… or sqlite:FILE");
  if (settings.ledger == Ledger::own)
    throw Stop(Code::USAGE,
               "Latchkey's own schema is PostgreSQL's (an SQLite store has no migrations); for yours, say --dir");
  return std::make_unique<SqliteTarget>(url.substr(7), clock, random);
}

}  // namespace latchkey::migrations
