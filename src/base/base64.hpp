// Base64 with padding (RFC 4648, section 4). Pure; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace latchkey {

std::string encode_base64(std::string_view bytes);
// None when the text is not base64 with padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace latchkey
