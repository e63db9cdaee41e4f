#include "http/chunked.hpp"

#include <gtest/gtest.h>

#include <string>

namespace latchkey::http {
namespace {

struct Decoded {
  std::string body;
  std::size_t used = 0;
  bool is_done = false;
};

// Feeds pieces of `step` bytes until the body ends, or the first fault.
Result<Decoded> decode(std::string_view bytes, std::size_t step, std::size_t body_bytes_max = 1000) {
  ChunkedDecoder decoder(body_bytes_max);
  Decoded decoded;
  while (decoded.used < bytes.size() && !decoder.is_done()) {
    const Result<std::size_t> used = decoder.feed(bytes.substr(decoded.used, step), decoded.body);
    if (!used) return std::unexpected(used.error());
    decoded.used += *used;
  }
  decoded.is_done = decoder.is_done();
  return decoded;
}

TEST(Chunked, DecodesPiecesOfAnySize) {
  const std::string bytes =
      "5\r\nhello\r\n00A;name=\"value\"\r\n, wonderfu\r\n1;x\r\nl\r\n0\r\nTrailer: x\r\nB:y\r\n\r\n";
  for (std::size_t step = 1; step <= bytes.size() + 9; ++step) {
    const Result<Decoded> decoded = decode(bytes + "GET / HTT", step);
    ASSERT_TRUE(decoded) << step;
    EXPECT_EQ(decoded->body, "hello, wonderful") << step;
    EXPECT_EQ(decoded->used, bytes.size()) << step;
    EXPECT_TRUE(decoded->is_done) << step;
  }
}

TEST(Chunked, IsNotDoneEarly) {
  const std::string_view bytes = "3\r\nabc\r\n0\r\nT: x\r\n\r\n";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<Decoded> decoded = decode(bytes.substr(0, size), 100);
    ASSERT_TRUE(decoded) << size;
    EXPECT_FALSE(decoded->is_done) << size;
  }
  EXPECT_TRUE(decode("0\r\n\r\n", 1)->is_done);
}

TEST(Chunked, RefusesHostileBodies) {
  using namespace std::string_view_literals;
  for (const std::string_view bytes : {"\r\n"sv,
                                       "x\r\n"sv,
                                       " 5\r\nhello"sv,
                                       "5 \r\nhello"sv,
                                       "+5\r\nhello"sv,
                                       "-5\r\n"sv,
                                       "0x5\r\nhello"sv,
                                       ";x\r\n"sv,
                                       "5\nhello"sv,
                                       "5\r\rhello"sv,
                                       "5;a\nhello"sv,
                                       "5;\0\r\n"sv,
                                       "5\r\nhelloX"sv,
                                       "5\r\nhello\n"sv,
                                       "5\r\nhello\rX"sv,
                                       "5\r\nhello\r\n\r\n"sv,
                                       "0\r\nX\n"sv,
                                       "0\r\n T: x\r\n\r\n"sv,
                                       "0\r\n: x\r\n\r\n"sv,
                                       "0\r\nT: \x01\r\n"sv,
                                       "0\r\nT: x\rY"sv,
                                       "0\r\n\rX"sv,
                                       "0\r\n\n"sv,
                                       "0000000000000005\r\nhello"sv,
                                       "ffffffffffffffff\r\n"sv,
                                       "10000000000000000\r\n"sv})
    for (const std::size_t step : {std::size_t{1}, bytes.size()}) {
      const Result<Decoded> decoded = decode(bytes, step);
      ASSERT_FALSE(decoded) << bytes;
      EXPECT_EQ(decoded.error().code, Code::BAD_REQUEST) << bytes;
    }
}

TEST(Chunked, HasLimits) {
  EXPECT_TRUE(decode("5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n", 1, 10)->is_done);
  // The decoder rejects the size line itself, before the bytes of the chunk arrive.
  EXPECT_EQ(decode("5\r\nhello\r\n6\r\n", 1, 10).error().code, Code::BODY_TOO_LARGE);
  EXPECT_EQ(decode("fffffffffffffff\r\n", 1, 10).error().code, Code::BODY_TOO_LARGE);
  EXPECT_FALSE(decode("1;" + std::string(5000, 'x'), 100));
  EXPECT_FALSE(decode("0\r\nT: " + std::string(5000, 'x'), 100));
  std::string drip;
  for (int i = 0; i < 2000; ++i) drip += "1;abc\r\nx\r\n";
  EXPECT_FALSE(decode(drip, 100, 10'000)) << "extensions are bounded together, not one by one";
}

}  // namespace
}  // namespace latchkey::http
