// Opens a store on PostgreSQL. Sets an empty database up, and refuses a schema of another version.
#pragma once

#include "store/postgres/pg_store.hpp"

namespace latchkey::migrate {

Result<std::unique_ptr<PostgresStore>> open_postgres(PostgresSettings settings, Clock& clock, Random& random);

}  // namespace latchkey::migrate
