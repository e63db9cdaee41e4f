// Civil time: local times and dates in the zones of the system's time zone database. Pure but for reading the system's
// zone files; safe from any thread.
#pragma once

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"

namespace latchkey {

// An IANA name such as Europe/Oslo, or UTC; INVALID_ARGUMENT when the system does not know it.
Result<absl::TimeZone> find_time_zone(std::string_view name);

absl::CivilSecond to_local(Instant at, absl::TimeZone zone);

// "2026-02-06"
std::string format_date(absl::CivilDay day);
// "2026-W06", the ISO 8601 week of the date. The week's year may not be the date's.
std::string format_iso_week(absl::CivilDay day);

}  // namespace latchkey
