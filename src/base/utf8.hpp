// Checks of UTF-8 text by RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace latchkey {

// The size in bytes of the well-formed character at the front of `text`; 0 when there is none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool second = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool second = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// The position of the first byte that belongs to no well-formed character; npos when all do.
std::size_t find_invalid_utf8(std::string_view text);

// A readable form of any bytes. UTF-8 without NUL, which every database can store as text, is returned unchanged. Other
// bytes are escaped as PostgreSQL's encode(…, 'escape') does: j\377o. The result cannot be decoded, because an
// unchanged text may contain the same escapes.
std::string make_readable(std::string_view name);

}  // namespace latchkey
