#include "base/time.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

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

// The longest span that is read; callers have lower limits of their own, and name them.
constexpr Duration kSpanMax = std::chrono::hours{24} * 100'000'000;

// The milliseconds of a unit; 0 when there is no such unit. A year has 365 days.
std::int64_t find_scale(std::string_view unit) {
  static constexpr std::pair<std::string_view, Duration> kUnits[] = {
      {"ms", milliseconds{1}}, {"s", seconds{1}}, {"m", minutes{1}},      {"h", hours{1}},
      {"d", hours{24}},        {"w", hours{168}}, {"y", hours{24} * 365},
  };
  for (const auto& [name, span] : kUnits)
    if (name == unit) return span.count();
  return 0;
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
  const auto bad = [&] {
    return fail(Code::INVALID_ARGUMENT,
                fmt::format("'{}' is not a duration such as 250ms, 60s, 5m, 1h30m, 7d, 2w or 1y", text));
  };
  std::int64_t sum = 0, scale_before = kSpanMax.count() + 1;
  std::string_view rest = text;
  do {
    std::int64_t count = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (problem != std::errc{} || count < 0) return bad();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::string_view unit = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
    const std::int64_t scale = find_scale(unit);
    if (scale == 0 || scale >= scale_before || count > (kSpanMax.count() - sum) / scale) return bad();
    rest.remove_prefix(unit.size());
    sum += count * scale;
    scale_before = scale;
  } while (!rest.empty());
  return Duration{sum};
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
