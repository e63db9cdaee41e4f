// RFC 9457 problem details from an Error: {"type","title","status","code","detail","retryable", …}. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"
#include "http/message.hpp"

namespace latchkey::http {

// One further member of a problem; `json` is a whole JSON value, written as it is.
struct ProblemMember {
  std::string_view name;
  std::string json;
};

// The status is the code's. `retry_after` becomes a Retry-After header, rounded up to whole seconds.
Response make_problem(const Error& error, std::span<const ProblemMember> extra = {},
                      std::optional<Duration> retry_after = std::nullopt);

// Appends a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string to_json_string(std::string_view text);

}  // namespace latchkey::http
