// JsonTree: the nodes of a JSON text in one array, checked strictly, with every scalar in or near its canonical form.
//
// Accepts only RFC 8259 with UTF-8. Refuses with INVALID_JSON and the position of the fault: anything after the value,
// an empty text, a byte order mark, invalid UTF-8, lone surrogates, nesting deeper than DEPTH_MAX, an integer literal
// that no double represents exactly, a number outside the range of doubles, a text of 1 GiB or more. Does NOT find
// duplicate member names: that needs the sorted names, see member_order.hpp.
//
// The reader is our own; simdjson checks only the UTF-8. simdjson's DOM is as fast, but it does not store the literals
// of numbers, and most canonical numbers are copies of their literals. A property test and a fuzzer compare the two
// readers.
//
// Reusable: parse() drops the earlier text and reuses the memory. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace latchkey {

enum class JsonKind : std::uint8_t {
  TOKEN,    // number, true, false or null: the text is the canonical form
  STRING,   // the text, with its quotes, is the canonical form
  ESCAPED,  // a string whose resolved text (with quotes) contains bytes that need an escape
  DOUBLE,   // a number that write_number() prints
  ARRAY,
  OBJECT,
};

// In document order. A container's children follow it; a member is its name's node and then its value's.
struct JsonNode {
  union {
    const char* text;     // TOKEN, STRING, ESCAPED: 32 bytes can be read from here
    double number;        // DOUBLE
    std::uint64_t count;  // ARRAY, OBJECT: elements or members
  };
  std::uint32_t size;  // of the text; of ARRAY, OBJECT: the index of the first node after it
  JsonKind kind;

  bool is_string() const { return kind == JsonKind::STRING || kind == JsonKind::ESCAPED; }
  bool is_container() const { return kind >= JsonKind::ARRAY; }
  // A string's resolved content, without quotes.
  std::string_view content() const { return {text + 1, size - 2}; }
};

class JsonTree {
 public:
  static constexpr int DEPTH_MAX = 128;
  static constexpr std::size_t PADDING = 64;

  Result<void> parse(std::string_view text);

  const JsonNode& node(std::uint32_t index) const { return nodes_[index]; }
  const JsonNode& root() const { return nodes_[0]; }
  // The index after the value at `index`.
  std::uint32_t next(std::uint32_t index) const {
    const JsonNode& at = nodes_[index];
    return at.is_container() ? at.size : index + 1;
  }
  // The byte of the source at which this string starts.
  std::size_t position(const JsonNode& string) const { return static_cast<std::size_t>(string.text - source_.get()); }
  // The maximum size of the written tree, in either member order.
  std::size_t written_max() const { return written_max_; }
  // Frees buffers that have grown larger than `bytes_retained`.
  void shrink(std::size_t bytes_retained);

 private:
  friend class JsonReader;

  std::unique_ptr<char[]> source_;  // a copy, because escapes are resolved in place
  std::size_t capacity_ = 0;
  std::vector<JsonNode> nodes_;
  std::size_t written_max_ = 0;
};

}  // namespace latchkey
