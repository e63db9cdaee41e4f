#include "base/error.hpp"

#include <array>

namespace latchkey {
namespace {

constexpr std::array kCodes{
#define LK_ERROR_CODE(name, status, retryable, title) CodeFacts{#name, status, retryable, title},
#include "base/error_codes.def"
#undef LK_ERROR_CODE
};

}  // namespace

const CodeFacts& facts(Code code) { return kCodes.at(static_cast<std::size_t>(code)); }

std::optional<Code> find_code(std::string_view name) {
  for (std::size_t i = 0; i < kCodes.size(); ++i)
    if (kCodes[i].name == name) return static_cast<Code>(i);
  return std::nullopt;
}

std::string to_string(const Error& error) {
  const CodeFacts& known = facts(error.code);
  return std::string(known.name) + ": " + (error.detail.empty() ? std::string(known.title) : error.detail);
}

}  // namespace latchkey
