#include "keying/canonical_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/hex.hpp"

namespace latchkey {
namespace {

using namespace std::literals;
using testing::HasSubstr;

std::string read_data(const std::string& path) {
  std::ifstream file(LATCHKEY_TEST_DATA "/" + path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The canonical form, or the error as text.
std::string canonical(std::string_view text) {
  const auto result = canonical_json(text);
  return result ? *result : to_string(result.error());
}

class JcsVectors : public testing::TestWithParam<const char*> {};

TEST_P(JcsVectors, GiveThePublishedForm) {
  const std::string name = GetParam();
  const std::string expected = read_data("jcs/output/" + name + ".json");
  EXPECT_EQ(canonical(read_data("jcs/input/" + name + ".json")), expected);
  EXPECT_EQ(canonical(expected), expected);
  std::string hex;
  for (const char c : read_data("jcs/outhex/" + name + ".txt"))
    if (std::isxdigit(static_cast<unsigned char>(c))) hex += c;
  EXPECT_EQ(to_hex({reinterpret_cast<const unsigned char*>(expected.data()), expected.size()}), hex);
}

INSTANTIATE_TEST_SUITE_P(All, JcsVectors,
                         testing::Values("arrays", "french", "structures", "unicode", "values", "weird"));

TEST(CanonicalJson, WritesEveryKindOfValue) {
  EXPECT_EQ(canonical(" null "), "null");
  EXPECT_EQ(canonical("true"), "true");
  EXPECT_EQ(canonical("\t\r\n -12.50"), "-12.5");
  EXPECT_EQ(canonical(R"("\u0061\/")"), R"("a/")");
  EXPECT_EQ(canonical("[ ]"), "[]");
  EXPECT_EQ(canonical("{ }"), "{}");
  EXPECT_EQ(canonical(R"([1, [2 , {"b" : 1 ,"a":[ ]}], "x"])"), R"([1,[2,{"a":[],"b":1}],"x"])");
}

TEST(CanonicalJson, EscapesAsLittleAsPossible) {
  EXPECT_EQ(canonical(R"("\u0000\u0008\t\n\u000b\f\r\u001F\"\\\/\u007f\u2028é")"),
            "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\x7f\u2028é\"");
  EXPECT_EQ(canonical(R"("\uD83D\uDE00 and \u00e9")"), "\"😀 and é\"");
  EXPECT_EQ(canonical('"' + std::string(1000, 'x') + "\\n" + std::string(100, 'y') + '"'),
            '"' + std::string(1000, 'x') + "\\n" + std::string(100, 'y') + '"');
  std::string controls, expected;
  for (int i = 0; i < 500; ++i) controls += "\\u0001";
  EXPECT_EQ(canonical('"' + controls + '"'), '"' + controls + '"');
}

TEST(CanonicalJson, GrowsWithShortNumbersThatPrintLong) {
  std::string text = "[1e20", expected = "[100000000000000000000";
  for (int i = 0; i < 1000; ++i) text += ",1e20", expected += ",100000000000000000000";
  EXPECT_EQ(canonical(text + "]"), expected + "]");
}

TEST(CanonicalJson, SortsUnescapedNamesByUtf16) {
  EXPECT_EQ(canonical(R"({"\ue000":1,"\ud83d\ude00":2,"é":3,"z":4,"":5,"\u0061":6})"),
            "{\"\":5,\"a\":6,\"z\":4,\"é\":3,\"😀\":2,\"\uE000\":1}");
  EXPECT_EQ(canonical(R"({"a\u0000":1,"a":2,"a\n":3,"a\"":4,"aa":5,"a\\":6})"),
            R"({"a":2,"a\u0000":1,"a\n":3,"a\"":4,"a\\":6,"aa":5})");
  EXPECT_EQ(canonical(R"({"customer_name":1,"customer_id":2,"customer":3,"customers":4})"),
            R"({"customer":3,"customer_id":2,"customer_name":1,"customers":4})");
}

TEST(CanonicalJson, SortsLargeObjects) {
  std::string text = "{", expected = "{";
  for (int i = 999; i >= 0; --i) text += fmt::format("\"same_prefix_{:03}\":{}{}", i, i, i == 0 ? "}" : ",");
  for (int i = 0; i < 1000; ++i) expected += fmt::format("\"same_prefix_{:03}\":{}{}", i, i, i == 999 ? "}" : ",");
  EXPECT_EQ(canonical(text), expected);
}

TEST(CanonicalJson, RefusesDuplicateNames) {
  EXPECT_EQ(canonical(R"({"a":1,"b":2,"a":3})"), "INVALID_JSON: duplicate member name at byte 13");
  EXPECT_EQ(canonical(R"({"a":1,"\u0061":1})"), "INVALID_JSON: duplicate member name at byte 7");
  EXPECT_THAT(canonical(R"({"long name one":1,"long name two":2,"long name one":1})"), HasSubstr("duplicate"));
  EXPECT_THAT(canonical(R"([0,{"x":{"":1,"":2}}])"), HasSubstr("duplicate"));
  EXPECT_THAT(canonical(R"({"a":{"b":1,"b":1},"c":{"d":[{"e":1}]}})"), HasSubstr("duplicate"));
  std::string many = "{\"n50\":0";
  for (int i = 0; i < 100; ++i) many += fmt::format(",\"n{}\":0", i);
  EXPECT_THAT(canonical(many + "}"), HasSubstr("duplicate"));
}

TEST(CanonicalJson, ErrorsNameFaultAndPosition) {
  for (const auto& [text, fault] : std::initializer_list<std::pair<std::string_view, const char*>>{
           {"", "the text is empty"},
           {" \n", "the text is empty"},
           {"\xEF\xBB\xBF{}", "byte order mark at byte 0"},
           {"{} x", "unexpected content after the value at byte 3"},
           {"1 2", "unexpected content after the value at byte 2"},
           {"[1,2", "unexpected end at byte 4"},
           {"[1,]", "unexpected character at byte 3"},
           {"[,1]", "unexpected character at byte 1"},
           {"[1 2]", "expected ',' or ']' at byte 3"},
           {"{\"a\":1,}", "expected a member name at byte 7"},
           {"{a:1}", "expected a member name at byte 1"},
           {"{\"a\" 1}", "expected ':' at byte 5"},
           {"{\"a\":1]", "expected ',' or '}' at byte 6"},
           {"{\"a\":", "unexpected end at byte 5"},
           {"\"abc", "unexpected end at byte 4"},
           {"\"a\nb\"", "control character in a string at byte 2"},
           {R"("\x")", "unknown escape at byte 1"},
           {R"("\u12g4")", "\\u needs four hexadecimal digits at byte 1"},
           {R"("ab\ud800")", "lone surrogate at byte 3"},
           {R"("\udc00")", "lone surrogate at byte 1"},
           {R"("\ud800\ud800")", "lone surrogate at byte 1"},
           {R"("\ud800\n")", "lone surrogate at byte 1"},
           {"tru", "unexpected character at byte 0"},
           {"nulll", "unexpected content after the value at byte 4"},
           {"True", "unexpected character at byte 0"},
           {"[01]", "malformed number at byte 2"},
           {"-", "unexpected end at byte 1"},
           {"[-]", "malformed number at byte 2"},
           {"[NaN]", "unexpected character at byte 1"},
           {"9007199254740993", "number cannot be represented exactly; send it as a string, at byte 0"},
           {"[1e400]", "number is beyond the range of a double; send it as a string, at byte 1"},
           {"\"\xFF\"", "the text is not valid UTF-8"},
           {"\"\xED\xA0\x80\"", "the text is not valid UTF-8"},
           {"\"\xC0\xAF\"", "the text is not valid UTF-8"},
           {"[1]//", "unexpected content after the value at byte 3"},
           {"'a'", "unexpected character at byte 0"}})
    EXPECT_EQ(canonical(text), "INVALID_JSON: "s + fault) << text;
  EXPECT_EQ(canonical("[1]\0"sv), "INVALID_JSON: unexpected content after the value at byte 3");
  EXPECT_EQ(canonical("\"a\0b\""sv), "INVALID_JSON: control character in a string at byte 2");
}

TEST(CanonicalJson, NestsTo128Levels) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(canonical(nested(128)), nested(128));
  EXPECT_EQ(canonical(nested(129)), "INVALID_JSON: nesting deeper than 128 levels at byte 128");
  EXPECT_THAT(canonical(std::string(1'000'000, '[')), HasSubstr("deeper"));
}

TEST(CanonicalJson, AppendsNothingOnFailure) {
  std::string out = "x";
  EXPECT_TRUE(append_canonical_json("[ 1 ]", out));
  EXPECT_FALSE(append_canonical_json("[ 1", out));
  EXPECT_EQ(out, "x[1]");
}

TEST(CanonicalJson, WorksAfterAVeryLargeText) {
  const std::string large = '"' + std::string(8 << 20, 'x') + '"';
  EXPECT_EQ(canonical(large), large);
  EXPECT_EQ(canonical("[1]"), "[1]");
}

TEST(Fingerprint, IsTheSha256OfTheCanonicalForm) {
  EXPECT_EQ(compute_fingerprint(R"({ "b":1, "a":2.0 })"), sha256(R"({"a":2,"b":1})"));
  EXPECT_EQ(compute_fingerprint("{").error().code, Code::INVALID_JSON);
}

}  // namespace
}  // namespace latchkey
