// Creates the three files of a new migration: empty scripts, and a plan with gaps, which are faults until they are
// filled.
#pragma once

#include "base/time.hpp"
#include "migrate/migration.hpp"

namespace latchkey::migrate {

struct NewMigration {
  std::int64_t version = 0;
  std::string label;
  std::vector<std::string> paths;
};

// Pure: the next number after these, with as many digits as the last one. If numbers are dates (YYYYMMDD, or with
// hhmmss), the date of `now`.
std::string compute_next_number(const std::vector<Migration>& migrations, Instant now);

// Creates the folder if there is none; never overwrites a file. USAGE for an invalid name or one that exists; NOT_FOUND
// when a file cannot be created: then none is.
Result<NewMigration> make_migration(const std::filesystem::path& folder, const std::string& name, Instant now);

}  // namespace latchkey::migrate
