#include "keying/json_string.hpp"

#include <optional>

namespace latchkey {
namespace {

std::optional<std::uint32_t> read_hex4(const char* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  return value;
}

char* write_utf8(std::uint32_t point, char* out) {
  const auto put = [&](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6), put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12), put(0x80 | (point >> 6 & 0x3F)), put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18), put(0x80 | (point >> 12 & 0x3F)), put(0x80 | (point >> 6 & 0x3F)),
        put(0x80 | (point & 0x3F));
  }
  return out;
}

// The code point of a one-letter escape, or 0 when the escape is unknown.
char resolve_letter(char letter) {
  switch (letter) {
    case '"':
    case '\\':
    case '/':
      return letter;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

bool needs_escape(std::uint32_t point) { return point < 0x20 || point == '"' || point == '\\'; }

struct Escape {
  const char* fault = nullptr;
  std::uint32_t point = 0;
  std::size_t size = 2;  // bytes of the escape in the source
};

// Reads the escape whose backslash is at `at`.
Escape read_escape(const char* at) {
  if (at[1] != 'u') {
    const char letter = resolve_letter(at[1]);
    if (letter == 0) return {.fault = "unknown escape"};
    return {.point = static_cast<std::uint32_t>(letter)};
  }
  const auto unit = read_hex4(at + 2);
  if (!unit) return {.fault = "\\u needs four hexadecimal digits"};
  if (*unit < 0xD800 || *unit > 0xDFFF) return {.point = *unit, .size = 6};
  if (*unit > 0xDBFF || at[6] != '\\' || at[7] != 'u') return {.fault = "lone surrogate"};
  const auto low = read_hex4(at + 8);
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return {.fault = "lone surrogate"};
  return {.point = 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00), .size = 12};
}

}  // namespace

UnescapedString unescape(char* at) {
  bool plain = true;
  char* out = at;
  for (;;) {
    if (*at == '"') {
      *out++ = '"';
      return {.end = at + 1, .stop = out, .plain = plain};
    }
    if (*at != '\\') return {.fault = "control character in a string", .end = at};
    const Escape escape = read_escape(at);
    if (escape.fault != nullptr) return {.fault = escape.fault, .end = at};
    plain = plain && !needs_escape(escape.point);
    out = write_utf8(escape.point, out);
    at += escape.size;
    char* const next = find_special(at);
    std::memmove(out, at, static_cast<std::size_t>(next - at));
    out += next - at;
    at = next;
  }
}

char* write_escaped(std::string_view text, char* out) {
  static constexpr char DIGITS[] = "0123456789abcdef";
  static constexpr char LETTERS[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";  // for 0x00 to 0x1f
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!needs_escape(byte)) {
      *out++ = c;
      continue;
    }
    *out++ = '\\';
    *out++ = byte < 0x20 ? LETTERS[byte] : c;
    if (byte >= 0x20 || LETTERS[byte] != 'u') continue;
    *out++ = '0', *out++ = '0', *out++ = DIGITS[byte >> 4], *out++ = DIGITS[byte & 15];
  }
  return out;
}

}  // namespace latchkey
