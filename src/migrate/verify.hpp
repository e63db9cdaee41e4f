// Verify: runs up, down and up again on a scratch database, step by step, and compares the schema after each step.
#pragma once

#include "migrate/runner.hpp"

namespace latchkey::migrate {

// The difference between the expected schema and the schema after a step.
struct Difference {
  std::string label;                 // of the migration
  std::string step;                  // "down", "up again"
  std::vector<std::string> missing;  // expected lines of the schema that are missing
  std::vector<std::string> extra;    // lines that are not expected
};
std::string to_string(const Difference& difference);

// Pure; none when they are the same.
std::optional<Difference> compare(const std::string& expected, const std::string& found);

// VerifyWatch: lets the caller interrupt a verification.
struct VerifyWatch {
  // Called with the scratch database after it is created, and with null before it is dropped.
  std::function<void(Target* scratch)> on_scratch = [](Target*) {};
  // Called before each step.
  std::function<bool()> must_stop = [] { return false; };
};

// Throws MigrationError: VERIFY_FAILED with the first difference, or when it must stop; SCRATCH_REFUSED, and the errors
// of a runner. The target itself is not changed.
void verify(Target& target, const Collection& files, const VerifyWatch& watch = {});

}  // namespace latchkey::migrate
