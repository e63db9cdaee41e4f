// JSON strings: finding their end, resolving escapes in place, and writing them as RFC 8785 and JSON.stringify do.
// Internal to keying. JsonTree::PADDING zero bytes must follow the text. Pure; safe from any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace latchkey {

// The first byte at or after `at` that ends a plain run: a quote, a backslash, or a control character (zero included).
inline char* find_special(char* at) {
  using Block = unsigned char __attribute__((vector_size(32)));
  using Flags = bool __attribute__((ext_vector_type(32)));
  for (;; at += 32) {
    Block bytes;
    std::memcpy(&bytes, at, sizeof bytes);
    const auto special = (bytes == '"') | (bytes == '\\') | (bytes < 0x20);
    const auto mask = std::bit_cast<std::uint32_t>(__builtin_convertvector(special, Flags));
    if (mask != 0) return at + std::countr_zero(mask);
  }
}

struct UnescapedString {
  const char* fault = nullptr;  // a description of the fault, or nullptr
  char* end = nullptr;          // one past the closing quote in the source, or the position of the fault
  char* stop = nullptr;         // one past the closing quote of the resolved text, which starts where the source did
  bool plain = true;            // the resolved text needs no escapes
};

// Resolves the escapes of the string whose first special byte is at `at`, in place: the resolved text is never longer.
// Refuses lone surrogates and control characters; the zero after the text is a control character.
UnescapedString unescape(char* at);

// Writes text (without quotes) with the fewest escapes; at most 6 bytes per byte. Returns one past the last byte.
char* write_escaped(std::string_view text, char* out);

}  // namespace latchkey
