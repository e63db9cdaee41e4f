#include "keying/json_number.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <string>

#include "base/hex.hpp"
#include "keying/es6_numbers_test.hpp"

namespace latchkey {
namespace {

std::string print(double value) {
  char text[NUMBER_SIZE_MAX];
  return {text, write_number(value, text)};
}

// The canonical form of a literal, or the name of its fault.
std::string canonical(std::string literal) {
  literal.append(64, '\0');
  const JsonNumber number = read_number(literal.data());
  switch (number.kind) {
    case JsonNumber::Kind::VERBATIM:
      return {number.text, number.size};
    case JsonNumber::Kind::COMPUTED:
      return print(number.value);
    case JsonNumber::Kind::MALFORMED:
      return "malformed";
    case JsonNumber::Kind::INEXACT:
      return "inexact";
    case JsonNumber::Kind::UNBOUNDED:
      return "unbounded";
  }
  return {};
}

std::string es6_checksum(int lines) {
  Es6Numbers numbers;
  Sha256 hash;
  for (int i = 0; i < lines; ++i) {
    const std::uint64_t bits = numbers.next();
    hash.add(fmt::format("{:x},{}\n", bits, print(std::bit_cast<double>(bits))));
  }
  return to_hex(hash.finish());
}

TEST(JsonNumber, PrintsFirst100000Es6Numbers) {
  EXPECT_EQ(es6_checksum(1'000), "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687");
  EXPECT_EQ(es6_checksum(100'000), "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7");
}

TEST(JsonNumber, PrintsAMillionEs6Numbers) {
  EXPECT_EQ(es6_checksum(1'000'000), "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16");
}

TEST(JsonNumber, ReadsCanonicalForms) {
  for (const auto& [literal, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"0", "0"},
           {"-0", "0"},
           {"-0.0", "0"},
           {"0.000", "0"},
           {"-0e9", "0"},
           {"0e999", "0"},
           {"100", "100"},
           {"-17", "-17"},
           {"1.50", "1.5"},
           {"-1.0", "-1"},
           {"10.00", "10"},
           {"0.000001", "0.000001"},
           {"0.0000010", "0.000001"},
           {"0.0000001", "1e-7"},
           {"-0.00000012", "-1.2e-7"},
           {"1e21", "1e+21"},
           {"1E20", "100000000000000000000"},
           {"999999999999999", "999999999999999"},
           {"123456789012345.6", "123456789012345.6"},
           {"0.1000000000000000055", "0.1"},
           {"333333333.33333329", "333333333.3333333"},
           {"5e-324", "5e-324"},
           {"1.7976931348623157e308", "1.7976931348623157e+308"},
       })
    EXPECT_EQ(canonical(literal), expected) << literal;
}

TEST(JsonNumber, RefusesInexactIntegers) {
  EXPECT_EQ(canonical("9007199254740991"), "9007199254740991");
  EXPECT_EQ(canonical("9007199254740992"), "9007199254740992");
  EXPECT_EQ(canonical("9007199254740993"), "inexact");
  EXPECT_EQ(canonical("-9007199254740993"), "inexact");
  EXPECT_EQ(canonical("-9007199254740994"), "-9007199254740994");
  // 2^64 and its neighbours: JavaScript prints the double as 18446744073709552000.
  EXPECT_EQ(canonical("18446744073709551615"), "inexact");
  EXPECT_EQ(canonical("18446744073709551616"), "inexact");
  EXPECT_EQ(canonical("18446744073709552000"), "18446744073709552000");
  EXPECT_EQ(canonical("100000000000000000000"), "100000000000000000000");
  EXPECT_EQ(canonical("1000000000000000000000"), "1e+21");
  EXPECT_EQ(canonical("1000000000000000000001"), "inexact");
  EXPECT_EQ(canonical("1" + std::string(308, '0')), "1e+308");
  EXPECT_EQ(canonical("1" + std::string(400, '0')), "unbounded");
}

TEST(JsonNumber, RefusesInexactIntegersInAnyNotation) {
  for (const char* literal :
       {"9007199254740993.0", "9007199254740993e0", "-9007199254740993.000", "900719925474099.3e1",
        "90071992547409930e-1", "0.9007199254740993E16", "0.00009007199254740993e+20", "9007199254740993.5",
        "9007199254740991.6", "18446744073709551616.0", "1000000000000000000001e0", "1.0000000000000000000001e30"})
    EXPECT_EQ(canonical(literal), "inexact") << literal;
  for (const char* literal : {"9007199254740992.0", "9007199254740992e0", "900719925474099.2e1", "90071992547409920e-1",
                              "0.9007199254740992E16", "0.00009007199254740992e+20"})
    EXPECT_EQ(canonical(literal), "9007199254740992") << literal;
  EXPECT_EQ(canonical("9007199254740991.0"), "9007199254740991");
  EXPECT_EQ(canonical("90071992547409910e-1"), "9007199254740991");
  EXPECT_EQ(canonical("1E30"), "1e+30");
  EXPECT_EQ(canonical("1e23"), "1e+23");
  EXPECT_EQ(canonical("10.00e22"), "1e+23");
}

TEST(JsonNumber, RefusesNumbersOutOfRange) {
  for (const char* literal : {"1e309", "-1e400", "1e99999999999999999999", "1e-400", "-2e-324"})
    EXPECT_EQ(canonical(literal), "unbounded") << literal;
}

TEST(JsonNumber, RefusesMalformedNumbers) {
  for (const char* literal :
       {"", "-", "+1", ".5", "1.", "01", "-01", "00", "1e", "1e+", "1.e1", "x", "-x", "Infinity", "NaN"})
    EXPECT_EQ(canonical(literal), "malformed") << literal;
}

RC_GTEST_PROP(JsonNumber, PrintedNumberIsReadAsTheSameDouble, (std::uint64_t bits)) {
  const double value = std::bit_cast<double>(bits);
  RC_PRE(std::isfinite(value));
  const std::string text = print(value);
  RC_ASSERT(std::strtod(text.c_str(), nullptr) == value);
  RC_ASSERT(canonical(text) == text);
}

// Checks the proof in read_fraction(): a copied literal is the text that printing the double gives.
RC_GTEST_PROP(JsonNumber, CopiedLiteralEqualsPrintedNumber, (std::uint64_t dice)) {
  const std::uint64_t digits = dice % 1'000'000'000'000'000;
  const std::size_t places = dice / 1'000'000'000'000'000 % 18;
  std::string literal = std::to_string(digits >> dice % 50);
  if (literal.size() <= places) literal.insert(0, places + 1 - literal.size(), '0');
  if (places != 0) literal.insert(literal.size() - places, ".");
  RC_ASSERT(canonical(literal) == print(std::strtod(literal.c_str(), nullptr)));
  RC_ASSERT(canonical("-" + literal) == print(-std::strtod(literal.c_str(), nullptr)));
}

}  // namespace
}  // namespace latchkey
