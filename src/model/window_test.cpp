#include "model/window.hpp"

#include <gtest/gtest.h>

#include "model/limits.hpp"

namespace latchkey {
namespace {

TEST(Window, ForeverIsAWordForAThousandYears) {
  EXPECT_EQ(parse_window("forever"), kForever);
  EXPECT_EQ(format_window(kForever), "forever");
  EXPECT_EQ(parse_window("36h"), std::chrono::hours{36});
  EXPECT_EQ(format_window(std::chrono::hours{36}), "36h");
  EXPECT_FALSE(parse_window("Forever"));
  EXPECT_GT(kForever, kWindowMax);
  EXPECT_LT(from_ms(0) + std::chrono::hours{24 * 365 * 1000} + kForever, *parse_rfc3339("9999-01-01T00:00:00Z"));
}

}  // namespace
}  // namespace latchkey
