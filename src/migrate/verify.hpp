// Verify: up, down and up again on a scratch database, step by step, and whether each step leaves the schema it should.
#pragma once

#include "migrate/runner.hpp"

namespace latchkey::migrate {

// What a step left that it should not have, or the other way round.
struct Difference {
  std::string label;                 // of the migration
  std::string step;                  // "down", "up again"
  std::vector<std::string> missing;  // lines of the schema that are gone
  std::vector<std::string> extra;    // and those that should be
};
std::string to_string(const Difference& difference);

// Pure; none when they are the same.
std::optional<Difference> compare(const std::string& expected, const std::string& found);

// For who may want to leave before the end.
struct VerifyWatch {
  // The scratch database once it is made; null before it goes.
  std::function<void(Target* scratch)> on_scratch = [](Target*) {};
  // Asked before each step.
  std::function<bool()> must_stop = [] { return false; };
};

// Throws MigrationError: VERIFY_FAILED with the first difference, or when it must stop; SCRATCH_REFUSED, and whatever a
// runner is stopped by. The target itself is not touched.
void verify(Target& target, const Collection& files, const VerifyWatch& watch = {});

}  // namespace latchkey::migrate
