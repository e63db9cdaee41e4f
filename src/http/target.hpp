// The request target: its path and query, and strict percent-decoding. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey::http {

struct Target {
  std::string_view path;   // still encoded
  std::string_view query;  // without the question mark, still encoded
};

Target split_target(std::string_view target);

// Fails with INVALID_ARGUMENT for "%", "%4", "%zz", and for "%00" and other control characters, which no name contains.
Result<std::string> decode_percent(std::string_view text);
// As decode_percent, and decodes "+" as a space, which is how forms encode it.
Result<std::string> decode_query(std::string_view text);
// Encodes all characters except the unreserved ones of RFC 3986. A slash is encoded too.
std::string encode_percent(std::string_view text);

// Finds the first parameter of that name and decodes it. Fails when a name or the value cannot be decoded.
Result<std::optional<std::string>> find_parameter(std::string_view query, std::string_view name);

// Removes and returns the next segment of a path: "/v1/runs/7" yields "v1", "runs", "7" and then nothing.
std::optional<std::string_view> take_segment(std::string_view& path);

}  // namespace latchkey::http
