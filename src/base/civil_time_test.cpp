// Time zones and dates.
#include "base/civil_time.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

TEST(TimeZone, RefusesWhatIsNoZoneName) {
  EXPECT_TRUE(find_time_zone("Etc/GMT+5"));
  for (const char* name :
       {"", "Mars/Olympus", "localtime", "/etc/localtime", "../zoneinfo/UTC", "Europe/Oslo\n", "file:UTC"})
    EXPECT_EQ(find_time_zone(name).error().code, Code::INVALID_ARGUMENT) << name;
}

TEST(CivilTime, FormatsDatesAndWeeks) {
  const absl::CivilDay day(to_local(*parse_rfc3339("2026-12-31T23:30:00Z"), *find_time_zone("Europe/Oslo")));
  EXPECT_EQ(format_date(day), "2027-01-01");
  EXPECT_EQ(format_iso_week(day), "2026-W53");
}

}  // namespace
}  // namespace latchkey
