#include "cli/terminal/table.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <ostream>

namespace latchkey {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

// The code point of a character of two or three bytes; 0 for others, which are all shown as they are.
char32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  if (text.size() == 2) return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
  if (text.size() == 3) return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  return 0;
}

// A character that reverses or breaks the line, or is invisible: with it one name could look like another.
bool is_deceptive(char32_t c) {
  return (c >= 0x80 && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
}

// The form in which one character is shown.
std::string show(std::string_view character, bool is_utf8) {
  const auto first = static_cast<unsigned char>(character.front());
  if (first < 0x20 || first == 0x7f || (first >= 0x80 && !is_utf8)) return "?";
  const char32_t c = code_point(character);
  return is_deceptive(c) ? fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c)) : std::string(character);
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

void print_facts(std::ostream& out, const std::vector<std::pair<std::string, std::string>>& facts) {
  for (const auto& [name, value] : facts) {
    if (value.empty()) continue;
    out << name << std::string(name.size() < 13 ? 13 - name.size() : 1, ' ') << value << '\n';
  }
}

std::string plain(std::string_view text, std::size_t width) {
  const bool is_utf8 = simdjson::validate_utf8(text.data(), text.size());
  std::string out;
  std::size_t shown = 0;
  while (!text.empty()) {
    std::size_t size = 1;
    while (is_utf8 && size < text.size() && is_continuation(text[size])) ++size;
    const std::string next = show(text.substr(0, size), is_utf8);
    shown += width_of(next);
    if (shown > width) return out + "…";
    out += next;
    text.remove_prefix(size);
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
