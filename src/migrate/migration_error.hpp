// Fault: an error in a file and its line. Faults are collected, so that all of them are reported at once.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace latchkey::migrate {

struct Fault {
  std::string file;
  int line = 0;  // 0: the file as a whole
  std::string text;

  bool operator==(const Fault&) const = default;
};

// 0002_orders.plan.yml:3: …
std::string to_string(const Fault& fault);
std::string to_string(const std::vector<Fault>& faults);  // one per line

// MigrationError stops a runner. The functions that users of the module call catch it and return a Result.
struct MigrationError : std::runtime_error {
  MigrationError(Code code, const std::string& detail) : std::runtime_error(detail), code(code) {}
  Code code;
};

}  // namespace latchkey::migrate
