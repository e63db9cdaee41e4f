// The request target: path and query, and strict percent-decoding. Pure.
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

// INVALID_ARGUMENT for "%", "%4", "%zz" and for "%00" and other control characters: nothing we name holds them.
Result<std::string> decode_percent(std::string_view text);
// As decode_percent, with "+" for a space, as forms are sent.
Result<std::string> decode_query(std::string_view text);
// Everything but RFC 3986's unreserved characters is encoded, a slash too.
std::string encode_percent(std::string_view text);

// The first parameter of that name, decoded; none when it is absent; an error when a name or its value cannot be
// decoded.
Result<std::optional<std::string>> find_parameter(std::string_view query, std::string_view name);

// Splits off the next segment of a path: "/v1/runs/7" gives "v1", then "runs", then "7", then nothing.
std::optional<std::string_view> take_segment(std::string_view& path);

}  // namespace latchkey::http
