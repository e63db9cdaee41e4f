#include "keying/grain.hpp"

#include <fmt/format.h>

#include <charconv>

namespace latchkey {
namespace {

using Unit = Grain::Unit;

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

std::string compute_grain_label(Grain grain, Instant at, absl::TimeZone zone) {
  const bool local = grain.unit >= Unit::DAY;
  const absl::CivilSecond time = to_local(at, local ? zone : absl::UTCTimeZone());
  const std::string date = format_date(absl::CivilDay(time));
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
