// Table: rows of text in columns. plain() removes control characters from the text of callers (keys, reasons), so that
// it cannot move the cursor or colour the terminal.
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

// Replaces control characters and bytes that are not UTF-8 by '?', and characters that are invisible or reverse the
// line by their number, such as \u202e. Cuts the text to `width` characters with an ellipsis.
std::string plain(std::string_view text, std::size_t width = 60);
// 2026-02-06 10:00:00Z; empty for the epoch.
std::string plain(Instant at);

}  // namespace latchkey
