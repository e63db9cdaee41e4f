#include "base/civil_time.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace latchkey {
namespace {

bool is_zone_name(std::string_view name) {
  // Abseil would also read files by path, and "localtime", which differs from machine to machine.
  return !name.empty() && name.size() <= 64 && name != "localtime" && name.front() != '/' &&
         std::ranges::all_of(name, [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' ||
                  c == '+' || c == '/';
         });
}

}  // namespace

Result<absl::TimeZone> find_time_zone(std::string_view name) {
  absl::TimeZone zone;
  if (!is_zone_name(name) || !absl::LoadTimeZone(std::string(name), &zone))
    return fail(Code::INVALID_ARGUMENT, fmt::format("'{}' is not a time zone such as Europe/Oslo", name));
  return zone;
}

absl::CivilSecond to_local(Instant at, absl::TimeZone zone) { return zone.At(absl::FromUnixMillis(to_ms(at))).cs; }

std::string format_date(absl::CivilDay day) {
  return fmt::format("{:04}-{:02}-{:02}", day.year(), day.month(), day.day());
}

// The year of a week is the year of its Thursday.
std::string format_iso_week(absl::CivilDay day) {
  const absl::CivilDay monday = absl::PrevWeekday(day + 1, absl::Weekday::monday);
  const absl::CivilDay thursday = monday + 3;
  return fmt::format("{:04}-W{:02}", thursday.year(), (absl::GetYearDay(thursday) - 1) / 7 + 1);
}

}  // namespace latchkey
