// The character classes of HTTP (RFC 9110 §5.6.2) and comparison without case. Neither depends on the locale.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace latchkey::http {

using CharSet = std::array<bool, 256>;

// The ASCII letters, the digits and the characters of `extra`.
constexpr CharSet alphanumeric_and(std::string_view extra) {
  CharSet set{};
  for (char c = '0'; c <= '9'; ++c) set[static_cast<unsigned char>(c)] = true;
  for (char c = 'a'; c <= 'z'; ++c) set[static_cast<unsigned char>(c)] = set[static_cast<unsigned char>(c - 32)] = true;
  for (const char c : extra) set[static_cast<unsigned char>(c)] = true;
  return set;
}

inline constexpr CharSet kTokenChars = alphanumeric_and("!#$%&'*+-.^_`|~");
// The characters of a host, a port or an IP literal. The comma is missing, so two Host headers that a proxy joined
// are rejected.
inline constexpr CharSet kHostChars = alphanumeric_and("-._~!$&'()*+;=:[]%");

constexpr bool is_in(const CharSet& set, char c) { return set[static_cast<unsigned char>(c)]; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Returns -1 when `c` is not a hexadecimal digit.
constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char low = to_lower(c);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  return true;
}

constexpr std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace latchkey::http
