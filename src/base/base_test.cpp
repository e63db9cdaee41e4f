#include <gtest/gtest.h>

#include "base/base64.hpp"
#include "base/clock.hpp"
#include "base/hex.hpp"
#include "base/random.hpp"
#include "base/sha256.hpp"
#include "base/time.hpp"
#include "base/utf8.hpp"
#include "base/uuid.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

TEST(Utf8, InvalidBytesAreFoundAndEscaped) {
  for (const char* good : {"", "plain", "a\\b", "\xc3\xa9\n", "\xe2\x82\xac", "\xf0\x9f\x94\x91"}) {
    EXPECT_EQ(find_invalid_utf8(good), std::string_view::npos) << good;
    EXPECT_EQ(make_readable(good), good);
  }
  EXPECT_EQ(find_invalid_utf8("\xc3\xa9j\xff"), 3u);
  EXPECT_EQ(find_invalid_utf8("cut \xe2\x82"), 4u);
  for (const char* bad : {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_EQ(find_invalid_utf8(bad), 0u) << bad;
  EXPECT_EQ(make_readable(std::string_view("a\\b\0\xc3\xa9\xff", 7)), R"(a\\b\000\303\251\377)");
}

TEST(Time, FormatsAndParsesRfc3339) {
  const Instant at = from_ms(1'770'372'000'123);
  EXPECT_EQ(format_rfc3339(at), "2026-02-06T10:00:00.123Z");
  EXPECT_EQ(parse_rfc3339("2026-02-06T10:00:00.1234567Z"), at);
  EXPECT_EQ(parse_rfc3339("2026-02-06T12:00:00.123+02:00"), at);
  EXPECT_EQ(parse_rfc3339("2026-02-06T10:00:00Z"), at - 123ms);
  for (const char* bad : {"", "2026-02-06", "2026-02-30T10:00:00Z", "2026-02-06T24:00:00Z", "2026-02-06T10:00:00",
                          "2026-02-06T10:00:00.Z", "2026-02-06T10:00:00+25:00", "2026-02-06T10:00:00Zx"})
    EXPECT_FALSE(parse_rfc3339(bad)) << bad;
}

TEST(Time, ReadsDurations) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("24h"), 24h);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(format_duration(168h), "7d");
  EXPECT_EQ(format_duration(90s), "90s");
  for (const char* bad : {"", "5", "h", "-1s", "1.5s", "1 s", "99999999999d"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Uuid, ContainsItsCounterAndSortsByTime) {
  const Uuid a = make_uuid_v7(from_ms(1'770'372'000'000), 0x3f'ffff'1234'5678, 42);
  EXPECT_EQ(uuid_counter(a), 0x3f'ffff'1234'5678u);
  EXPECT_EQ(parse_uuid(to_string(a)), a);
  EXPECT_EQ(to_string(a)[14], '7');
  EXPECT_LT(a, make_uuid_v7(from_ms(1'770'372'000'001), 0, 0));
  EXPECT_LT(a, make_uuid_v7(from_ms(1'770'372'000'000), 0x3f'ffff'1234'5679, 0));
  EXPECT_FALSE(parse_uuid("0190"));
  EXPECT_FALSE(parse_uuid("01900000-0000-7000-8000-00000000000g"));
}

TEST(Sha256, MatchesTheStandardAndSeparatesParts) {
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  const Digest one = hash.add_prefixed("ab").add_prefixed("c").finish();
  const Digest two = hash.add_prefixed("a").add_prefixed("bc").finish();
  EXPECT_NE(one, two);
}

TEST(Error, FindsCodesByName) {
  EXPECT_EQ(facts(Code::LEASE_LOST).name, "LEASE_LOST");
  EXPECT_EQ(find_code("KEY_REUSED"), Code::KEY_REUSED);
  EXPECT_FALSE(find_code("NOPE"));
  EXPECT_EQ(to_string(Error{Code::NOT_DUE, "in 5 s"}), "NOT_DUE: in 5 s");
}

TEST(Random, SeedRepeats) {
  SeededRandom a(7), b(7), c(8);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
}

TEST(ManualClock, ChangesOnlyByCalls) {
  ManualClock clock(from_ms(1'000));
  clock.advance(5ms);
  clock.jump(-1h);
  EXPECT_EQ(clock.elapsed(), 5ms);
  EXPECT_EQ(clock.now(), from_ms(1'005) - 1h);
}

TEST(Base64, EncodesAndDecodes) {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"a", "YQ=="},
                                    {"ab", "YWI="},
                                    {"abc", "YWJj"},
                                    {"abc\xff", "YWJj/w=="},
                                    {std::string("\0\0", 2), "AAA="}}) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
  for (const char* wrong : {"*", "YQ=", "Y", "Y\xc3\xa9=="}) EXPECT_FALSE(decode_base64(wrong)) << wrong;
}

}  // namespace
}  // namespace latchkey
