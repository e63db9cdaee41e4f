// What is text: UTF-8 as RFC 3629 has it, without surrogates, overlong forms and anything above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace latchkey {

// How many bytes at the front of `text` are one well-formed character; 0 for none.
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

// Where the first byte is that is no part of a character; npos: nowhere.
std::size_t find_no_utf8(std::string_view text);

// A name for people, from whatever was given for it: as it is where every database can keep it as text (UTF-8 without
// NUL), else as PostgreSQL's encode(…, 'escape') writes it: j\377o. Not to be read back: a text may look so by itself.
std::string make_readable(std::string_view name);

}  // namespace latchkey
