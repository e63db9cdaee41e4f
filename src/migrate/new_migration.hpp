// The three files of a migration that is to be written: empty scripts, and a plan whose gaps are faults until they are
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

// Pure: the next number behind these, as wide as the last one. Where numbers are dates (YYYYMMDD, or with hhmmss),
// today's.
std::string compute_next_number(const std::vector<Migration>& migrations, Instant now);

// Makes the folder if there is none; no file is ever written over. USAGE for a name that is none, or that one has
// already; NOT_FOUND when a file cannot be made: then none is.
Result<NewMigration> make_migration(const std::filesystem::path& folder, const std::string& name, Instant now);

}  // namespace latchkey::migrate
