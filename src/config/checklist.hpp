// Checklist: whether a function is safe to run twice, and what its definition lacks. `latchkey check` prints it and the
// API shows it per function. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/function.hpp"

namespace latchkey::config {

struct ChecklistItem {
  std::string_view name;  // key, guard, retry, dead_letter, output
  bool is_met = false;
  std::string text;  // what the function has, or what to add
};

struct Checklist {
  std::vector<ChecklistItem> items;
  // Whether a second run of one job changes nothing: yes, no or unknown, and why.
  std::string_view idempotent;
  std::string reason;
};

Checklist make_checklist(const FunctionDefinition& function);

}  // namespace latchkey::config
