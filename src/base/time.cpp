#include "base/time.hpp"

#include <fmt/format.h>

#include <charconv>

namespace latchkey {
namespace {

using namespace std::chrono;

// Reads exactly `digits` digits at `at`; -1 when the text has none there.
int read_digits(std::string_view text, std::size_t at, std::size_t digits) {
  if (at + digits > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

struct Offset {
  minutes value;
  bool good;
};

Offset read_offset(std::string_view text) {
  if (text == "Z" || text == "z") return {minutes{0}, true};
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return {minutes{0}, false};
  const int h = read_digits(text, 1, 2), m = read_digits(text, 4, 2);
  if (h < 0 || h > 23 || m < 0 || m > 59) return {minutes{0}, false};
  const minutes span = hours{h} + minutes{m};
  return {text[0] == '-' ? -span : span, true};
}

}  // namespace

std::string format_rfc3339(Instant at) {
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss clock{at - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

Result<Instant> parse_rfc3339(std::string_view text) {
  const auto bad = [&] {
    return fail(Code::INVALID_ARGUMENT, fmt::format("'{}' is not an RFC 3339 time such as 2026-02-06T10:00:00Z", text));
  };
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':')
    return bad();
  const int y = read_digits(text, 0, 4), mo = read_digits(text, 5, 2), d = read_digits(text, 8, 2);
  const int h = read_digits(text, 11, 2), mi = read_digits(text, 14, 2), s = read_digits(text, 17, 2);
  if (y < 0 || mo < 0 || d < 0 || h < 0 || mi < 0 || s < 0 || h > 23 || mi > 59 || s > 60) return bad();
  const year_month_day date{year{y}, month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
  if (!date.ok()) return bad();
  std::size_t at = 19;
  int ms = 0;
  if (text[at] == '.') {
    std::size_t digits = 0;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++digits)
      if (digits < 3) ms = ms * 10 + (text[at] - '0');
    if (digits == 0) return bad();
    for (; digits < 3; ++digits) ms *= 10;
  }
  const Offset offset = read_offset(text.substr(at));
  if (!offset.good) return bad();
  return sys_days{date} + hours{h} + minutes{mi} + seconds{s} + milliseconds{ms} - offset.value;
}

Result<Duration> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t scale = unit == "ms"  ? 1
                             : unit == "s" ? 1'000
                             : unit == "m" ? 60'000
                             : unit == "h" ? 3'600'000
                             : unit == "d" ? 86'400'000
                                           : 0;
  if (problem != std::errc{} || scale == 0 || count < 0 || count > 36'500LL * 86'400'000 / scale)
    return fail(Code::INVALID_ARGUMENT, fmt::format("'{}' is not a duration such as 250ms, 60s, 5m, 24h or 7d", text));
  return Duration{count * scale};
}

std::string format_duration(Duration span) {
  const std::int64_t ms = span.count();
  if (ms != 0 && ms % 86'400'000 == 0) return fmt::format("{}d", ms / 86'400'000);
  if (ms != 0 && ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms != 0 && ms % 60'000 == 0) return fmt::format("{}m", ms / 60'000);
  if (ms % 1'000 == 0) return fmt::format("{}s", ms / 1'000);
  return fmt::format("{}ms", ms);
}

}  // namespace latchkey
