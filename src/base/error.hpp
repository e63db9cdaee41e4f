// Error: an operating error with a stable code. Expected replies (busy, replay) are variants instead; see
// docs/architecture.md.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey {

enum class Code {
#define LK_ERROR_CODE(name, status, retryable, title) name,
#include "base/error_codes.def"
#undef LK_ERROR_CODE
};

struct CodeFacts {
  std::string_view name;
  int http_status;
  bool retryable;
  std::string_view title;
};

const CodeFacts& facts(Code code);
std::optional<Code> find_code(std::string_view name);

struct Error {
  Code code = Code::INTERNAL;
  std::string detail;  // for people to read; never contains bodies, keys of other tenants, or secrets

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Code code, std::string detail) {
  return std::unexpected(Error{code, std::move(detail)});
}

// "INVALID_JSON: unexpected end at byte 12"
std::string to_string(const Error& error);

}  // namespace latchkey
