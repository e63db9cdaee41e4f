#include "migrate/open_postgres.hpp"

#include "migrate/own_schema.hpp"

namespace latchkey::migrate {

Result<std::unique_ptr<PostgresStore>> open_postgres(PostgresSettings settings, Clock& clock, Random& random) {
  if (auto ready = prepare_own_schema(settings.url, random); !ready) return std::unexpected(ready.error());
  return PostgresStore::open(std::move(settings), clock, random);
}

}  // namespace latchkey::migrate
