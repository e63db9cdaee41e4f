#include "cli/table.hpp"

#include <simdjson.h>

#include <algorithm>
#include <ostream>

namespace latchkey {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

}  // namespace

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

std::string plain(std::string_view text, std::size_t width) {
  const bool is_utf8 = simdjson::validate_utf8(text.data(), text.size());
  std::string out;
  std::size_t shown = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!is_continuation(c) || !is_utf8) {
      if (shown == width) return out + "…";
      shown += 1;
    }
    out += byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_utf8) ? '?' : c;
  }
  return out;
}

std::string plain(Instant at) {
  if (at == Instant{}) return "";
  std::string text = format_rfc3339(at);  // 2026-02-06T10:00:00.123Z
  text[10] = ' ';
  return text.substr(0, 19) + "Z";
}

}  // namespace latchkey
