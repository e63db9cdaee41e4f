// JSON numbers: what a literal means, and how ECMAScript (hence RFC 8785) prints it.
// Pure; safe from any thread.
#pragma once

#include <cstddef>

namespace latchkey {

// What a literal became.
struct JsonNumber {
  enum class Kind {
    VERBATIM,   // the canonical text is `size` bytes of the source at `text`
    COMPUTED,   // `value` must be printed by write_number()
    MALFORMED,  // not a JSON number
    INEXACT,    // of 2^53 or more, and would be printed as another number
    UNBOUNDED,  // no double is near: too large, or so small that it would become 0
  };
  Kind kind;
  const char* text = nullptr;
  std::size_t size = 0;
  double value = 0;
  const char* end = nullptr;  // one past the literal
};

// Reads the literal at `text`. There must be readable bytes behind it (JsonTree::PADDING) that are no part of a number.
JsonNumber read_number(const char* text);

constexpr std::size_t NUMBER_SIZE_MAX = 32;
// Prints a finite double as ECMAScript's Number::toString does (-0 is "0"); needs room for NUMBER_SIZE_MAX bytes.
// Returns one past the last byte.
char* write_number(double value, char* out);

}  // namespace latchkey
