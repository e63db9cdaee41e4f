#include "keying/grain.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

std::string label(std::string_view grain, std::string_view at, std::string_view zone = "UTC") {
  return compute_grain_label(*parse_grain(grain), *parse_rfc3339(at), *find_time_zone(zone));
}

TEST(Grain, NamesItsBuckets) {
  constexpr std::string_view AT = "2026-02-06T10:07:59.999Z";
  EXPECT_EQ(label("1min", AT), "2026-02-06T10:07Z");
  EXPECT_EQ(label("5min", AT), "2026-02-06T10:05Z");
  EXPECT_EQ(label("10min", AT), "2026-02-06T10:00Z");
  EXPECT_EQ(label("15min", AT), "2026-02-06T10:00Z");
  EXPECT_EQ(label("30min", "2026-02-06T10:30:00Z"), "2026-02-06T10:30Z");
  EXPECT_EQ(label("hour", AT), "2026-02-06T10Z");
  EXPECT_EQ(label("day", AT), "2026-02-06");
  EXPECT_EQ(label("week", AT), "2026-W06");
  EXPECT_EQ(label("month", AT), "2026-02");
}

// covers: A1
TEST(Grain, UsesTheLocalDateFromADayOn) {
  constexpr std::string_view AT = "2026-01-31T23:30:00Z";
  EXPECT_EQ(label("day", AT, "Europe/Oslo"), "2026-02-01");
  EXPECT_EQ(label("month", AT, "Europe/Oslo"), "2026-02");
  EXPECT_EQ(label("day", AT, "America/New_York"), "2026-01-31");
  EXPECT_EQ(label("week", "2026-02-01T23:30:00Z", "Europe/Oslo"), "2026-W06");
  EXPECT_EQ(label("week", "2026-02-01T23:30:00Z"), "2026-W05");
}

TEST(Grain, HourLabelsAreUtc) {
  EXPECT_EQ(label("hour", "2026-10-25T00:30:00Z", "Europe/Oslo"), "2026-10-25T00Z");
  EXPECT_EQ(label("hour", "2026-10-25T01:30:00Z", "Europe/Oslo"), "2026-10-25T01Z");
  EXPECT_EQ(label("15min", "2026-02-06T10:50:00Z", "Asia/Kathmandu"), "2026-02-06T10:45Z");
}

TEST(Grain, KnowsIsoWeeksAroundTheNewYear) {
  EXPECT_EQ(label("week", "2027-01-01T12:00:00Z"), "2026-W53");
  EXPECT_EQ(label("week", "2027-01-03T12:00:00Z"), "2026-W53");
  EXPECT_EQ(label("week", "2027-01-04T12:00:00Z"), "2027-W01");
  EXPECT_EQ(label("week", "2024-12-30T12:00:00Z"), "2025-W01");
  EXPECT_EQ(label("week", "2023-01-01T12:00:00Z"), "2022-W52");
}

TEST(Grain, ReadsWhatItWrites) {
  for (const char* text :
       {"1min", "2min", "5min", "10min", "12min", "15min", "20min", "30min", "hour", "day", "week", "month"})
    EXPECT_EQ(to_string(parse_grain(text).value()), text);
  for (const char* text : {"", "min", "0min", "7min", "60min", "-5min", "05min", "5 min", "5minutes", "Day", "year"})
    EXPECT_EQ(parse_grain(text).error().code, Code::INVALID_ARGUMENT) << text;
}

TEST(TimeZone, RefusesWhatIsNoZoneName) {
  EXPECT_TRUE(find_time_zone("Etc/GMT+5"));
  for (const char* name :
       {"", "Mars/Olympus", "localtime", "/etc/localtime", "../zoneinfo/UTC", "Europe/Oslo\n", "file:UTC"})
    EXPECT_EQ(find_time_zone(name).error().code, Code::INVALID_ARGUMENT) << name;
}

// Nanoseconds in 64 bits would overflow at these dates, and two days would share a key.
TEST(Grain, LabelsDatesFarAway) {
  const auto day = [](const char* at) {
    return compute_grain_label(*parse_grain("day"), *parse_rfc3339(at), absl::UTCTimeZone());
  };
  EXPECT_EQ(day("2300-01-01T00:00:00Z"), "2300-01-01");
  EXPECT_EQ(day("1500-06-01T00:00:00Z"), "1500-06-01");
  EXPECT_EQ(day("9999-12-31T23:59:59Z"), "9999-12-31");
}

}  // namespace
}  // namespace latchkey
