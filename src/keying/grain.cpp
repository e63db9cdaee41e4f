#include "keying/grain.hpp"

#include <absl/time/civil_time.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace latchkey {
namespace {

using Unit = Grain::Unit;

// The year of a week is the year of its Thursday.
std::string format_iso_week(absl::CivilDay day) {
  const absl::CivilDay monday = absl::PrevWeekday(day + 1, absl::Weekday::monday);
  const absl::CivilDay thursday = monday + 3;
  return fmt::format("{:04}-W{:02}", thursday.year(), (absl::GetYearDay(thursday) - 1) / 7 + 1);
}

bool is_zone_name(std::string_view name) {
  // Abseil would also read files by path, and "localtime", which differs from machine to machine.
  return !name.empty() && name.size() <= 64 && name != "localtime" && name.front() != '/' &&
         std::ranges::all_of(name, [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' ||
                  c == '+' || c == '/';
         });
}

}  // namespace

Result<Grain> parse_grain(std::string_view text) {
  if (text == "hour") return Grain{Unit::HOUR};
  if (text == "day") return Grain{Unit::DAY};
  if (text == "week") return Grain{Unit::WEEK};
  if (text == "month") return Grain{Unit::MONTH};
  int minutes = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), minutes);
  const bool good = read.ec == std::errc{} && minutes > 0 && minutes < 60 && 60 % minutes == 0 && text[0] != '0' &&
                    text.substr(static_cast<std::size_t>(read.ptr - text.data())) == "min";
  if (!good)
    return fail(Code::INVALID_ARGUMENT,
                fmt::format("'{}' is not a grain: 1min, 5min, 10min, 15min, 30min, hour, day, week or month", text));
  return Grain{Unit::MINUTES, minutes};
}

std::string to_string(Grain grain) {
  switch (grain.unit) {
    case Unit::MINUTES:
      return fmt::format("{}min", grain.minutes);
    case Unit::HOUR:
      return "hour";
    case Unit::DAY:
      return "day";
    case Unit::WEEK:
      return "week";
    case Unit::MONTH:
      return "month";
  }
  return {};
}

Result<absl::TimeZone> find_time_zone(std::string_view name) {
  absl::TimeZone zone;
  if (!is_zone_name(name) || !absl::LoadTimeZone(std::string(name), &zone))
    return fail(Code::INVALID_ARGUMENT, fmt::format("'{}' is not a time zone such as Europe/Oslo", name));
  return zone;
}

std::string compute_grain_label(Grain grain, Instant at, absl::TimeZone zone) {
  const bool local = grain.unit >= Unit::DAY;
  const absl::CivilSecond time = (local ? zone : absl::UTCTimeZone()).At(absl::FromUnixMillis(to_ms(at))).cs;
  const std::string date = fmt::format("{:04}-{:02}-{:02}", time.year(), time.month(), time.day());
  switch (grain.unit) {
    case Unit::MINUTES:
      return fmt::format("{}T{:02}:{:02}Z", date, time.hour(), time.minute() / grain.minutes * grain.minutes);
    case Unit::HOUR:
      return fmt::format("{}T{:02}Z", date, time.hour());
    case Unit::DAY:
      return date;
    case Unit::WEEK:
      return format_iso_week(absl::CivilDay(time));
    case Unit::MONTH:
      return date.substr(0, date.size() - 3);
  }
  return {};
}

}  // namespace latchkey
