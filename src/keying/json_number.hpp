// JSON numbers: reads literals, and prints doubles as ECMAScript (and therefore RFC 8785) does.
// Pure; safe from any thread.
#pragma once

#include <cstddef>

namespace latchkey {

// A literal after reading.
struct JsonNumber {
  enum class Kind {
    VERBATIM,   // the canonical text is `size` bytes of the source at `text`
    COMPUTED,   // `value` must be printed by write_number()
    MALFORMED,  // not a JSON number
    INEXACT,    // 2^53 or more, and ECMAScript would print another number
    UNBOUNDED,  // outside the range of doubles: too large, or so small that it would become 0
  };
  Kind kind;
  const char* text = nullptr;
  std::size_t size = 0;
  double value = 0;
  const char* end = nullptr;  // one past the literal
};

// Reads the literal at `text`. Readable bytes that are not part of a number (JsonTree::PADDING) must follow it.
JsonNumber read_number(const char* text);

constexpr std::size_t NUMBER_SIZE_MAX = 32;
// Prints a finite double as ECMAScript's Number::toString does (-0 is "0"); writes at most NUMBER_SIZE_MAX bytes.
// Returns one past the last byte.
char* write_number(double value, char* out);

}  // namespace latchkey
