#include "keying/names.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace latchkey {
namespace {

bool is_tenant_character(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
}

// Control characters of ASCII, and from U+0080 to U+009F, in valid UTF-8.
bool has_control_character(std::string_view text) {
  unsigned char before = 0;
  for (const unsigned char c : text) {
    if (c < 0x20 || c == 0x7F || (before == 0xC2 && c < 0xA0)) return true;
    before = c;
  }
  return false;
}

Result<void> check_text(std::string_view what, std::string_view text, std::size_t size_max) {
  if (text.empty()) return fail(Code::INVALID_ARGUMENT, fmt::format("the {} is empty", what));
  if (text.size() > size_max)
    return fail(Code::INVALID_ARGUMENT,
                fmt::format("the {} has {} bytes; at most {} are allowed", what, text.size(), size_max));
  if (!simdjson::validate_utf8(text))
    return fail(Code::INVALID_ARGUMENT, fmt::format("the {} is not valid UTF-8", what));
  if (has_control_character(text))
    return fail(Code::INVALID_ARGUMENT, fmt::format("the {} has a control character", what));
  return {};
}

}  // namespace

Result<void> check_tenant(std::string_view tenant) {
  if (auto good = check_text("tenant", tenant, NAME_SIZE_MAX); !good) return good;
  if (!std::ranges::all_of(tenant, is_tenant_character))
    return fail(Code::INVALID_ARGUMENT,
                fmt::format("the tenant '{}' may hold only letters, digits, '.', '_' and '-'", tenant));
  return {};
}

Result<void> check_function(std::string_view function) { return check_text("function", function, NAME_SIZE_MAX); }

Result<void> check_key_text(std::string_view text) { return check_text("key", text, KEY_SIZE_MAX); }

}  // namespace latchkey
