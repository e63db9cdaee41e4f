#include "transfer/database_address.hpp"

#include <gtest/gtest.h>

namespace latchkey::transfer {
namespace {

TEST(DatabaseAddress, NamesEveryHost) {
  EXPECT_EQ(make_address({{"host", "a,b"}, {"port", "1,2"}, {"dbname", "d"}, {"password", "p"}}), "a:1,b:2/d");
  EXPECT_EQ(make_address({{"host", "a,b"}, {"port", "7"}, {"dbname", "d"}}), "a:7,b:7/d");
  EXPECT_EQ(make_address({{"host", "a,b"}, {"port", ",2"}, {"dbname", "d"}}), "a:5432,b:2/d");
  EXPECT_EQ(make_address({{"host", "a"}, {"hostaddr", "10.0.0.1"}, {"dbname", "d"}}), "10.0.0.1:5432/d");
  EXPECT_EQ(make_address({{"hostaddr", "10.0.0.1,10.0.0.2"}, {"dbname", "d"}}), "10.0.0.1:5432,10.0.0.2:5432/d");
  EXPECT_EQ(make_address({{"host", "/run/pg"}, {"dbname", "a/b%"}}), "/run/pg:5432/a%2Fb%25");
  EXPECT_EQ(make_address({}), ":5432/");
}

TEST(DatabaseAddress, IsSameForSameDatabaseAndCommonHost) {
  for (const char* same : {"a:1/d", "b:2/d", "a:1,b:2/d", "b:2,a:1/d", "c:3,b:2/d"})
    EXPECT_TRUE(is_same_database("a:1,b:2/d", same)) << same;
  for (const char* other : {"a:1/e", "a:2/d", "b:1/d", "c:3/d", "a/d", "/d", "", "d", "a:1,b:2"})
    EXPECT_FALSE(is_same_database("a:1,b:2/d", other)) << other;
  EXPECT_TRUE(is_same_database("/run/pg:1/d", "/run/pg:1/d"));
  EXPECT_FALSE(is_same_database("/run/pg:1/d", "/run/other:1/d"));
}

}  // namespace
}  // namespace latchkey::transfer
