// Grains: the period after which a key is new, and the label of the bucket that contains an instant.
//
//   1min 5min … 30min   2026-02-06T10:05Z   buckets of UTC, any number of minutes below 60 that divides an hour
//   hour                2026-02-06T10Z      of UTC
//   day                 2026-02-06          the local date in the time zone
//   week                2026-W06            the ISO 8601 week of the local date (its year may not be the date's)
//   month               2026-02             of the local date
//
// Below a day the buckets are UTC in every zone, because local hours repeat when clocks are set back, and two hours
// must not share a key. Pure, except that it reads the system's zone files; safe from any thread.
#pragma once

#include <absl/time/time.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"

namespace latchkey {

struct Grain {
  enum class Unit { MINUTES, HOUR, DAY, WEEK, MONTH };
  Unit unit = Unit::DAY;
  int minutes = 0;  // only for MINUTES

  bool operator==(const Grain&) const = default;
};

// "5min", "hour", "day", "week", "month"; INVALID_ARGUMENT otherwise.
Result<Grain> parse_grain(std::string_view text);
std::string to_string(Grain grain);

// An IANA name such as Europe/Oslo, or UTC; INVALID_ARGUMENT when the system does not know it.
Result<absl::TimeZone> find_time_zone(std::string_view name);

std::string compute_grain_label(Grain grain, Instant at, absl::TimeZone zone);

}  // namespace latchkey
