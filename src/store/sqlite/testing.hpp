// For tests of the parts of SqliteTables: a database with the schema and without rows.
#pragma once

#include "store/sqlite/database.hpp"
#include "store/sqlite/schema.sql.hpp"

namespace latchkey {

struct EmptyDatabase : Database {
  EmptyDatabase() : Database(":memory:", nullptr, Access::write) { execute(sql::schema); }
};

}  // namespace latchkey
