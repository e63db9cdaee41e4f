// Canonical JSON (RFC 8785): one text for all texts that mean the same. The fingerprint of a request is its SHA-256.
//
// Two texts with the same canonical form have the same members and values; white space, member order, escapes and ways
// of writing a number (1.50, 15e-1) make no difference. Ambiguous texts are refused with INVALID_JSON and, except for
// UTF-8 faults, the position of the fault:
//   - anything but one RFC 8259 value in valid UTF-8; a byte order mark; lone surrogates
//   - the same member name twice in an object, compared after resolving escapes
//   - a number of 2^53 or more, however it is written, that is not the number which ECMAScript prints for its double:
//     send it as a string. All integers up to 2^53 are accepted. Above, each double represents one number, the one
//     that JavaScript would send: so two different integers never get the same text, and a canonical text is always
//     accepted again
//   - a number too large for a double, or so small that it would become 0
//   - nesting deeper than 128 levels; a text of 1 GiB or more
// Below 2^53 fractions are rounded to the nearest double, as RFC 8785 requires: 0.1 and 0.1000000000000000055 are the
// same number. -0 is 0. Names sort by UTF-16 code units.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "keying/json_tree.hpp"
#include "keying/json_writer.hpp"

namespace latchkey {

// The next three functions use one Canonicalizer per thread: safe from any thread.
Result<std::string> canonical_json(std::string_view text);
// Appends to `out`, which does not change on failure.
Result<void> append_canonical_json(std::string_view text, std::string& out);
Result<Digest> compute_fingerprint(std::string_view text);

// Canonicalizes texts and reuses its memory for the next text. One thread at a time.
class Canonicalizer {
 public:
  // The canonical form, valid until the next call.
  Result<std::string_view> canonicalize(std::string_view text);
  // Frees buffers that have grown larger than `bytes_retained`.
  void shrink(std::size_t bytes_retained);

 private:
  JsonTree tree_;
  JsonWriter writer_;
  std::unique_ptr<char[]> out_;
  std::size_t capacity_ = 0;
};

}  // namespace latchkey
