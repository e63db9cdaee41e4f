// Migration: one numbered step of a schema, in three files: 0001_name.up.sql, 0001_name.down.sql, 0001_name.plan.yml.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "migrate/plan.hpp"

namespace latchkey::migrate {

struct File {
  std::string name;
  std::string text;
};

struct Migration {
  std::int64_t version = 0;
  std::string label;  // 0001_name
  std::string name;
  std::string up;
  std::string down;
  std::string checksum;  // of the up file: SHA-256 in hex, line ends as \n, without a byte order mark
  Plan plan;
  std::string plan_file;  // 0001_name.plan.yml, or .plan.yaml

  std::string up_file() const { return label + ".up.sql"; }
  std::string down_file() const { return label + ".down.sql"; }
};

// The migrations, ordered by number, and the faults: names, gaps, repeated numbers, missing files, files that are not
// text, faults in plans.
struct Collection {
  std::vector<Migration> migrations;
  std::vector<Fault> faults;
};

// Ignores files that are neither SQL nor plans.
Collection arrange(const std::vector<File>& files);
// NOT_FOUND when there is no such folder, or a file cannot be read; MIGRATION_INVALID for a pipe, a device, or more
// than 64 MiB.
Result<Collection> read_folder(const std::filesystem::path& folder);
// Latchkey's own migrations, which are part of the program.
const Collection& own_migrations();

}  // namespace latchkey::migrate
