#include "base/utf8.hpp"

#include <fmt/format.h>

#include <iterator>

namespace latchkey {

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return text.npos;
}

std::string make_readable(std::string_view name) {
  if (name.find('\0') == name.npos && find_invalid_utf8(name) == name.npos) return std::string(name);
  std::string readable;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0 || byte >= 0x80)
      fmt::format_to(std::back_inserter(readable), "\\{:03o}", byte);
    else
      readable.append(c == '\\' ? 2 : 1, c);
  }
  return readable;
}

}  // namespace latchkey
