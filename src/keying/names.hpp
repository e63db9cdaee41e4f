// Checks of names and key texts. Pure; safe from any thread. All failures are INVALID_ARGUMENT.
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace latchkey {

constexpr std::size_t NAME_SIZE_MAX = 128;
constexpr std::size_t KEY_SIZE_MAX = 512;

// 1 to 128 of A-Z a-z 0-9 . _ -
Result<void> check_tenant(std::string_view tenant);
// 1 to 128 bytes of UTF-8 without control characters.
Result<void> check_function(std::string_view function);
// 1 to 512 bytes of UTF-8 without control characters.
Result<void> check_key_text(std::string_view text);

}  // namespace latchkey
