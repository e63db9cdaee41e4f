#include "pg/codec.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

using namespace std::string_literals;

// Of one dimension, from 1.
std::string array(int elements, bool has_null, const std::string& type, const std::string& bytes) {
  return "\0\0\0\1"s + (has_null ? "\0\0\0\1"s : "\0\0\0\0"s) + type + "\0\0\0"s + static_cast<char>(elements) +
         "\0\0\0\1"s + bytes;
}

TEST(Column, IsWrittenInNetworkOrder) {
  const Column small = Column(Type::int4).add(1).add(-2);
  EXPECT_EQ(small.finish(), array(2, false, "\0\0\0\x17"s, "\0\0\0\4\0\0\0\1\0\0\0\4\xff\xff\xff\xfe"s));
  const Column large = Column(Type::int8).add(1).add(0x0102030405060708);
  EXPECT_EQ(large.finish(), array(2, false, "\0\0\0\x14"s, "\0\0\0\x8\0\0\0\0\0\0\0\1\0\0\0\x8\1\2\3\4\5\6\7\x8"s));
  EXPECT_EQ(Column(Type::int8).finish(), "\0\0\0\0\0\0\0\0\0\0\0\x14"s);
}

TEST(Column, OfTheSameValueIsWrittenAsOftenAsItWasAdded) {
  Column column(Type::text);
  for (int i = 0; i < 3; ++i) column.add("ab");
  EXPECT_TRUE(column.is_constant());
  EXPECT_EQ(column.size(), 3u);
  EXPECT_EQ(column.finish_first(), "ab");
  EXPECT_EQ(column.finish(), array(3, false, "\0\0\0\x19"s, "\0\0\0\2ab\0\0\0\2ab\0\0\0\2ab"s));
  for (const char* other : {"", "b", "xab"}) {
    Column changed = column;
    changed.add(other).add("ab");
    EXPECT_FALSE(changed.is_constant()) << other;
    EXPECT_EQ(changed.size(), 5u);
    EXPECT_EQ(changed.finish(), array(5, false, "\0\0\0\x19"s,
                                      "\0\0\0\2ab\0\0\0\2ab\0\0\0\2ab\0\0\0"s +
                                          static_cast<char>(std::string(other).size()) + other + "\0\0\0\2ab"s));
  }
}

TEST(Column, OfNullsIsConstantUntilOneIsNone) {
  Column column(Type::bytes);
  column.add_null().add_null();
  EXPECT_TRUE(column.is_constant());
  EXPECT_EQ(column.finish_first(), std::nullopt);
  column.add(std::string_view(""));
  EXPECT_FALSE(column.is_constant()) << "empty is not NULL";
  EXPECT_EQ(column.finish(), array(3, true, "\0\0\0\x11"s, "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"s));
}

}  // namespace
}  // namespace latchkey::pg
