// A store on PostgreSQL: set up where there is none, refused where the schema is not this version's.
#pragma once

#include "store/postgres/pg_store.hpp"

namespace latchkey::migrate {

Result<std::unique_ptr<PostgresStore>> open_postgres(PostgresSettings settings, Clock& clock, Random& random);

}  // namespace latchkey::migrate
