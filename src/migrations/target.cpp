#include "migrations/target.hpp"

#include "migrations/pg_target.hpp"
#include "migrations/sqlite_target.hpp"
#include "store/postgres/hosts.hpp"

namespace latchkey::migrations {

std::unique_ptr<Target> open_target(const TargetSettings& settings, Clock& clock, Random& random) {
  const std::string& url = settings.database;
  if (pg::names_postgres(url)) return std::make_unique<PgTarget>(settings, random);
  if (!url.starts_with("sqlite:") || url.size() == 7)
    throw Stop(Code::USAGE, "--database is postgres://… or sqlite:FILE");
  if (settings.ledger == Ledger::own)
    throw Stop(Code::USAGE,
               "Latchkey's own schema is PostgreSQL's (an SQLite store has no migrations); for yours, say --dir");
  return std::make_unique<SqliteTarget>(url.substr(7), clock, random);
}

}  // namespace latchkey::migrations
