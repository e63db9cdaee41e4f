// Lower-case hexadecimal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey {

std::string to_hex(std::span<const unsigned char> bytes);
// Fills `out` from exactly twice as many digits. Returns false for any other text.
bool from_hex(std::string_view text, std::span<unsigned char> out);

}  // namespace latchkey
