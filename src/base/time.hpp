// Instants and durations in milliseconds, and their text formats.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

using Duration = std::chrono::milliseconds;
using Instant = std::chrono::sys_time<Duration>;

inline std::int64_t to_ms(Instant at) { return at.time_since_epoch().count(); }
inline Instant from_ms(std::int64_t ms) { return Instant{Duration{ms}}; }

// 2026-02-06T10:00:00.123Z: always UTC, always three digits after the point.
std::string format_rfc3339(Instant at);
// RFC 3339 with any offset and any number of fraction digits (truncated to milliseconds).
Result<Instant> parse_rfc3339(std::string_view text);

// "250ms", "60s", "5m", "24h", "7d"; whole numbers, one unit.
Result<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration span);

}  // namespace latchkey
