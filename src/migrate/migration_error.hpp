// What is wrong with a file, and where. Faults are collected, so that all are told at once.
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
std::string to_string(const std::vector<Fault>& faults);  // one a line

// What stops a runner; caught at the module's edge, where it becomes a Result.
struct MigrationError : std::runtime_error {
  MigrationError(Code code, const std::string& detail) : std::runtime_error(detail), code(code) {}
  Code code;
};

}  // namespace latchkey::migrate
