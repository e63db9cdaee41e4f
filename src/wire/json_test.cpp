#include <gtest/gtest.h>

#include "wire/json_in.hpp"
#include "wire/json_out.hpp"
#include "wire/json_scan.hpp"

namespace latchkey::wire {
namespace {

TEST(MemberScan, FindsValuesAsTheyWereSent) {
  MemberScan scan(" { \"a\\\"}\" :\n [1, \"]\\\"\", {\"x\":[]} ] ,\"b\":\"\\\\\", \"c\" : -1.50e3 ,\"d\":null}");
  EXPECT_EQ(scan.next_value(), "[1, \"]\\\"\", {\"x\":[]} ]");
  EXPECT_EQ(scan.next_value(), "\"\\\\\"");
  EXPECT_EQ(scan.next_value(), "-1.50e3");
  EXPECT_EQ(scan.next_value(), "null");
}

TEST(Suggestions, FindTheNearestName) {
  const std::string_view names[] = {"function", "key", "retries"};
  EXPECT_EQ(find_nearest("fucntion", names), "function");
  EXPECT_EQ(find_nearest("kye", names), "key");
  EXPECT_EQ(find_nearest("Retries", names), "retries");
  EXPECT_EQ(find_nearest("somethingelse", names), "");
  EXPECT_EQ(find_nearest(std::string(1000, 'k'), names), "");
}

TEST(JsonOut, WritesInstantsAsBaseDoes) {
  for (const std::int64_t ms : {0LL, 1LL, -1LL, 951'782'400'000LL, 1'770'379'200'123LL, 253'402'300'799'999LL}) {
    std::string out;
    append_instant(out, from_ms(ms));
    EXPECT_EQ(out, format_rfc3339(from_ms(ms)));
  }
}

TEST(JsonOut, WritesUuidsAsBaseDoes) {
  const Uuid id = make_uuid_v7(from_ms(1'770'379'200'123), 77, 99);
  std::string out;
  append_uuid(out, id);
  EXPECT_EQ(out, to_string(id));
}

TEST(JsonOut, BytesThatAreNotJsonAreBase64) {
  std::string out;
  ObjectOut(out).payload("a", "not json").payload("b", " {\"x\": 1}").payload("c", "").end();
  EXPECT_EQ(out, R"({"a_base64":"bm90IGpzb24=","b": {"x": 1}})");
}

TEST(JsonOut, WritesExtremeNumbers) {
  std::string out;
  ObjectOut(out).number("least", INT64_MIN).number("most", INT64_MAX).end();
  EXPECT_EQ(out, R"({"least":-9223372036854775808,"most":9223372036854775807})");
}

}  // namespace
}  // namespace latchkey::wire
