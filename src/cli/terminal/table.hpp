// Table: rows for people, columns as wide as they must be. What others wrote (keys, reasons) is shown without control
// characters: it cannot move the cursor or colour the terminal.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace latchkey {

class Table {
 public:
  explicit Table(std::vector<std::string> names) { rows_.push_back(std::move(names)); }
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "  name   value" lines; empty values are left out.
void print_facts(std::ostream& out, const std::vector<std::pair<std::string, std::string>>& facts);

// Control characters and bytes that are not UTF-8 as '?', those that turn the line around or are not seen as \u202e;
// cut to `width` characters with an ellipsis.
std::string plain(std::string_view text, std::size_t width = 60);
// 2026-02-06 10:00:00Z; empty for the epoch.
std::string plain(Instant at);

}  // namespace latchkey
