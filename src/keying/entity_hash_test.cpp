#include "keying/entity_hash.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

namespace latchkey {
namespace {

// covers: A2
TEST(EntityHash, EqualsTheJavaScriptHash) {
  simdjson::dom::parser parser;
  std::size_t cases = 0;
  for (const auto entry : simdjson::dom::array(parser.load(LATCHKEY_TEST_DATA "/entity_hash.json"))) {
    const std::string_view text = entry["text"];
    const auto canonical = compute_entity_text(text);
    ASSERT_TRUE(canonical.has_value()) << text << '\n' << to_string(canonical.error());
    EXPECT_EQ(*canonical, std::string_view(entry["canonical"])) << text;
    EXPECT_EQ(compute_entity_hash(text), std::string_view(entry["hash"])) << text;
    ++cases;
  }
  EXPECT_GE(cases, 200u);
}

TEST(EntityHash, SortsOnlyTheOutermostNames) {
  EXPECT_EQ(compute_entity_text(R"({"b":{"y":1,"x":2},"a":3})"), R"([["a",3],["b",{"y":1,"x":2}]])");
  EXPECT_EQ(compute_entity_text(R"({"o":{"b":1,"10":2,"9":3,"01":4,"4294967295":5,"4294967294":6}})"),
            R"([["o",{"9":3,"10":2,"4294967294":6,"b":1,"01":4,"4294967295":5}]])");
  EXPECT_EQ(compute_entity_text("{}"), "[]");
}

TEST(EntityHash, RefusesTextsThatJavaScriptChanges) {
  for (const char* text : {"[]", "1", "\"a\"", "null", "", "{", R"({"a":1,"a":1})", R"({"a":{"b":1,"b":1}})",
                           R"({"a":9007199254740993})", R"({"a":"\ud800"})"}) {
    const auto hash = compute_entity_hash(text);
    ASSERT_FALSE(hash.has_value()) << text;
    EXPECT_EQ(hash.error().code, Code::INVALID_JSON) << text;
  }
}

}  // namespace
}  // namespace latchkey
