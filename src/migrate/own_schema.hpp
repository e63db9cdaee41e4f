// Checks Latchkey's own schema in PostgreSQL when a server starts. Sets an empty database up and refuses a schema of
// another version; never changes an existing schema.
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
  std::string detail;  // the message for operators
};

// Only reads. STORE_UNAVAILABLE when the database cannot be reached.
Result<SchemaReport> inspect_own_schema(const std::string& url, Random& random);

// Sets an empty database up, with all migrations in one transaction. If several servers start at once, one does it and
// the others wait. SCHEMA_OLDER, SCHEMA_NEWER, MIGRATION_CHANGED or STORE_FORMAT for a schema of another version.
Result<void> prepare_own_schema(const std::string& url, Random& random, Duration patience = std::chrono::minutes{1});

// The error with which a server, or `migrate up`, refuses this schema; none if it can be used.
std::optional<Error> find_refusal(const SchemaReport& report);

// Pure: judges the schema by its ledger. `has_schema`: there is a schema `latchkey`.
enum class HasSchema { no, yes };
SchemaReport judge(const std::vector<Migration>& migrations, const std::vector<Applied>& ledger, HasSchema has_schema);

}  // namespace latchkey::migrate
