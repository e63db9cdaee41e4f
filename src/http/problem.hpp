// make_problem: an Error as RFC 9457 problem details, {"type","title","status","code","detail","retryable", …}. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"
#include "http/message.hpp"

namespace latchkey::http {

// An additional member of a problem. `json` is a complete JSON value and is written unchanged.
struct ProblemMember {
  std::string_view name;
  std::string json;
};

// The code determines the status. `retry_after` becomes a Retry-After header, rounded up to whole seconds.
Response make_problem(const Error& error, std::span<const ProblemMember> extra = {},
                      std::optional<Duration> retry_after = std::nullopt);

// Appends a JSON string with its quotes. Replaces bytes that are not UTF-8 with U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string to_json_string(std::string_view text);

}  // namespace latchkey::http
