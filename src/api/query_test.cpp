#include "api/query.hpp"

#include <gtest/gtest.h>

namespace latchkey::api {
namespace {

TEST(Query, RefusesUnknownAndRepeatedParameters) {
  const std::string_view known[] = {"limit", "key"};
  const auto query = Query::parse("key=a%2Bb+c&limit=7&", known);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->find("key"), "a+b c");
  EXPECT_EQ(query->find_number("limit", 1, 1, 10), 7u);
  EXPECT_FALSE(query->find_number("limit", 1, 1, 6));
  EXPECT_FALSE(Query::parse("limt=1", known));
  EXPECT_FALSE(Query::parse("key=1&key=2", known));
  EXPECT_FALSE(Query::parse("key=%", known));
}

}  // namespace
}  // namespace latchkey::api
