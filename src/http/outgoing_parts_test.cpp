// The parts of the outgoing client that need no sockets.
#include <gtest/gtest.h>

#include "http/outgoing_url.hpp"
#include "http/request_headers.hpp"
#include "http/response_collector.hpp"

namespace latchkey::http {
namespace {

TEST(OriginOf, HasOneFormPerOrigin) {
  EXPECT_EQ(origin_of("http://a/b?c"), "http://a:80");
  EXPECT_EQ(origin_of("HTTP://A:80"), "http://a:80");
  EXPECT_EQ(origin_of("https://user:p@a#f"), "https://a:443");
  EXPECT_EQ(origin_of("https://[::1]/"), "https://[::1]:443");
  EXPECT_EQ(origin_of("http://[::1]:8/"), "http://[::1]:8");
  EXPECT_EQ(origin_of("nonsense"), "nonsense");
}

TEST(ResolveRedirect, ResolvesAgainstTheBase) {
  const auto url = [](const char* location) {
    const auto target = resolve_redirect("http://u:p@a:81/b/c?d", location);
    return target ? (target->is_same_origin ? "" : "other ") + target->url : "none";
  };
  EXPECT_EQ(url("/x"), "http://u:p@a:81/x");
  EXPECT_EQ(url("x y"), "http://u:p@a:81/b/x%20y");
  EXPECT_EQ(url("?e"), "http://u:p@a:81/b/c?e");
  EXPECT_EQ(url("http://A:81/x"), "http://A:81/x");
  EXPECT_EQ(url("//b/x"), "other http://b/x");
  EXPECT_EQ(url("https://a:81/x"), "other https://a:81/x");
  EXPECT_EQ(url("http://v:q@a/x"), "other http://a/x");
  EXPECT_EQ(url("ftp://a/x"), "none");
  EXPECT_EQ(url("file:///etc/hosts"), "none");
  EXPECT_EQ(url("http://a:x/"), "none");
}

TEST(RequestHeaders, AreCheckedAndListed) {
  RequestHeaders headers;
  const auto lines = [&](std::vector<OutgoingHeader> given) {
    if (const auto reason = headers.assign(given)) return *reason;
    std::string joined;
    for (const curl_slist* node = headers.list(); node != nullptr; node = node->next) joined.append(node->data) += '|';
    return joined;
  };
  EXPECT_EQ(lines({}), "Expect:|Content-Type:|");
  EXPECT_EQ(lines({{"A", " b "}, {"C", ""}, {"content-type", "x"}}), "Expect:|A: b|C;|content-type: x|");
  EXPECT_EQ(lines({{"A b", "c"}}), "a header name is not valid");
  EXPECT_EQ(lines({{"", "c"}}), "a header name is not valid");
  EXPECT_EQ(lines({{"A", "b\r\nC: d"}}), "the value of A has control characters");
  EXPECT_EQ(lines({{"A", std::string("b\0c", 3)}}), "the value of A has control characters");
  EXPECT_EQ(lines({{"content-length", "3"}}), "the client sets content-length itself");
}

TEST(ResponseCollector, DropsInterimHeadsAndTrailers) {
  ResponseCollector collector({.header_bytes_max = 100, .headers_max = 10, .body_bytes_max = 10});
  for (const char* line : {"HTTP/1.1 103 Early Hints\r\n", "Link: x\r\n", "\r\n"}) collector.add_line(line);
  EXPECT_FALSE(collector.has_head());
  for (const char* line : {"HTTP/1.1 200\r\n", "A: b\r\n"}) collector.add_line(line);
  EXPECT_FALSE(collector.has_head());
  collector.add_line("\r\n");
  EXPECT_TRUE(collector.has_head());
  EXPECT_TRUE(collector.add_body("0123456789"));
  collector.add_line("Trailer: x\r\n");
  const OutgoingResponse response = collector.take();
  EXPECT_EQ(response.status, 200);
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.find("a"), "b");
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_FALSE(response.body_truncated);
}

TEST(ResponseCollector, StopsAtItsLimits) {
  ResponseCollector collector({.header_bytes_max = 10, .headers_max = 2, .body_bytes_max = 3});
  for (const char* line : {"HTTP/2 200\r\n", "A: 1\r\n", "Long: 1234567\r\n", "\r\n"}) collector.add_line(line);
  EXPECT_FALSE(collector.add_body("1234"));
  const OutgoingResponse response = collector.take();
  EXPECT_EQ(response.headers.size(), 1u);
  EXPECT_TRUE(response.headers_truncated);
  EXPECT_EQ(response.body, "123");
  EXPECT_TRUE(response.body_truncated);
}

}  // namespace
}  // namespace latchkey::http
