// Latchkey's own schema in PostgreSQL, as a server finds it when it starts: set up where there is none, refused where
// it is not this version's. Nothing else is touched.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "migrate/runner.hpp"

namespace latchkey::migrate {

enum class SchemaState {
  empty,  // there is no schema `latchkey`
  current,
  older,    // needs `latchkey migrate up`
  newer,    // was made by a later version
  changed,  // a migration was applied from another file than this version has
  foreign,  // there is a schema `latchkey`, but no ledger in it
};

struct SchemaReport {
  SchemaState state = SchemaState::current;
  std::string detail;  // for people
};

// Only reads. STORE_UNAVAILABLE when the database cannot be reached.
Result<SchemaReport> inspect_own_schema(const std::string& url, Random& random);

// Sets an empty database up, all migrations in one transaction; of several servers that start at once one does it and
// the others wait. SCHEMA_OLDER, SCHEMA_NEWER, MIGRATION_CHANGED or STORE_FORMAT for what is not this version's.
Result<void> prepare_own_schema(const std::string& url, Random& random, Duration patience = std::chrono::minutes{1});

// What a server, or `migrate up`, must not go on with.
std::optional<Error> find_refusal(const SchemaReport& report);

// Pure: from the ledger. `has_schema`: there is a schema `latchkey`.
enum class HasSchema { no, yes };
SchemaReport judge(const std::vector<Migration>& migrations, const std::vector<Applied>& ledger, HasSchema has_schema);

}  // namespace latchkey::migrate
