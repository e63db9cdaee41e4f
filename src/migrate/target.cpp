#include "migrate/target.hpp"

#include "migrate/pg_target.hpp"
#include "migrate/sqlite_target.hpp"
#include "pg/dsn.hpp"

namespace latchkey::migrate {

std::unique_ptr<Target> open_target(const TargetSettings& settings, Clock& clock, Random& random) {
  const std::string& url = settings.database;
  if (pg::names_postgres(url)) return std::make_unique<PgTarget>(settings, random);
  if (!url.starts_with("sqlite:") || url.size() == 7)
    throw MigrationError(Code::USAGE, "--database is postgres://… or sqlite:FILE");
  if (settings.ledger == Ledger::own)
    throw MigrationError(
        Code::USAGE, "Latchkey's own schema is PostgreSQL's (an SQLite store has no migrations); for yours, say --dir");
  return std::make_unique<SqliteTarget>(url.substr(7), clock, random);
}

}  // namespace latchkey::migrate
