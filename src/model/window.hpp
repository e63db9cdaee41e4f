// The window of a key: how long a success is replayed. `kForever` is a window without an end. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"

namespace latchkey {

// A thousand years: every time that is computed from it is before the year 9999, which all formats can express.
inline constexpr Duration kForever = std::chrono::hours{24 * 365'250};
inline constexpr std::string_view kForeverWord = "forever";

// "forever", or a span as parse_duration() reads it.
Result<Duration> parse_window(std::string_view text);
std::string format_window(Duration window);

}  // namespace latchkey
