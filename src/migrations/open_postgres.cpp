#include "migrations/open_postgres.hpp"

#include "migrations/own_schema.hpp"

namespace latchkey::migrations {

Result<std::unique_ptr<PostgresStore>> open_postgres(PostgresSettings settings, Clock& clock, Random& random) {
  if (auto ready = prepare_own_schema(settings.url, random); !ready) return std::unexpected(ready.error());
  return PostgresStore::open(std::move(settings), clock, random);
}

}  // namespace latchkey::migrations
