#include "http/head.hpp"

#include <gtest/gtest.h>

#include <string>

namespace latchkey::http {
namespace {

constexpr HeadLimits kLimits{};

Result<std::size_t> parse(std::string_view bytes, const HeadLimits& limits = kLimits) {
  Head head;
  return parse_head(bytes, limits, head);
}

TEST(Head, ReadsARequest) {
  const std::string_view bytes =
      "POST /v1/runs?a=b HTTP/1.1\r\nHost: localhost:7420\r\nContent-Length: 12\r\nX-Note:\t two words \t\r\n"
      "Empty:\r\nConnection: Keep-Alive, x\r\nExpect: 100-Continue\r\n\r\nbody";
  Head head;
  EXPECT_EQ(parse_head(bytes, kLimits, head), bytes.size() - 4);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/runs?a=b");
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_FALSE(head.is_chunked);
  EXPECT_TRUE(head.is_keep_alive);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_EQ(head.fields.size(), 6u);
  EXPECT_EQ(find_field(head.fields, "x-NOTE"), "two words");
  EXPECT_EQ(find_field(head.fields, "empty"), "");
  EXPECT_EQ(find_field(head.fields, "absent"), std::nullopt);
  EXPECT_EQ(head.method.data(), bytes.data()) << "no copy is made";
}

TEST(Head, FindsPersistence) {
  const auto is_persistent = [](const char* version, const char* connection) {
    Head head;
    const std::string bytes = std::string("GET / HTTP/") + version + "\r\nHost: a\r\n" + connection + "\r\n";
    EXPECT_TRUE(parse_head(bytes, kLimits, head)) << bytes;
    return head.is_keep_alive;
  };
  EXPECT_TRUE(is_persistent("1.1", ""));
  EXPECT_FALSE(is_persistent("1.1", "Connection: close\r\n"));
  EXPECT_FALSE(is_persistent("1.1", "Connection: keep-alive\r\nconnection: x , CLOSE\r\n"));
  EXPECT_FALSE(is_persistent("1.1", "Connection: close\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(is_persistent("1.0", ""));
  EXPECT_TRUE(is_persistent("1.0", "Connection: keep-alive\r\n"));
}

TEST(Head, IsResetBetweenRequests) {
  Head head;
  ASSERT_TRUE(parse_head("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
                         kLimits, head));
  EXPECT_TRUE(head.is_chunked);
  ASSERT_TRUE(parse_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n", kLimits, head));
  EXPECT_FALSE(head.is_chunked);
  EXPECT_FALSE(head.expects_continue);
  EXPECT_EQ(head.fields.size(), 1u);
}

TEST(Head, NeedsMoreUntilTheLastByte) {
  const std::string bytes =
      "OPTIONS * HTTP/1.0\r\nhost: [::1]:80\r\nA-long-header: 0123456789abcdef0123456789abcdef\r\nb: \xc3\xa9\r\n\r\n";
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse(std::string_view(bytes).substr(0, size)), 0u) << size;
  EXPECT_EQ(parse(bytes), bytes.size());
}

TEST(Head, AcceptsUnusualValidHeads) {
  for (const char* head : {
           "GET / HTTP/1.1\r\nHost:\r\n\r\n",
           "GET / HTTP/1.0\r\n\r\n",
           "M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET //a/%2e?x=[]{}|\"<>\\^` HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-ENCODING: \tchunked \r\n\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nX: a\tb\r\nX: again\r\n\r\n",
       })
    EXPECT_EQ(parse(head), std::string_view(head).size()) << head;
}

struct Hostile {
  const char* why;
  std::string_view head;
};

using namespace std::string_view_literals;

const Hostile kHostile[] = {
    // two lengths of the body
    {"CL and TE", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"TE and CL", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"},
    {"two CL", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"},
    {"two equal CL", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n"},
    {"CL list", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"},
    {"CL plus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"},
    {"CL minus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n"},
    {"CL hex", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n"},
    {"CL empty", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n"},
    {"CL inner space", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n"},
    {"CL decimal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\n"},
    {"CL overflow", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"},
    {"CL far overflow", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999999\r\n\r\n"},
    {"TE list", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
    {"TE identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"},
    {"TE twice in one", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"},
    {"TE twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"TE prefixed", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"},
    {"TE quoted", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n"},
    {"TE parameter", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n"},
    {"TE empty", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"},
    {"TE vertical tab", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \vchunked\r\n\r\n"},
    {"TE in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
    // ambiguous line ends
    {"bare LF lines", "GET / HTTP/1.1\nHost: a\n\n"},
    {"bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"},
    {"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
    {"bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"},
    {"bare CR at the end", "GET / HTTP/1.1\r\nHost: a\r\n\rX\r\n\r\n"},
    {"CR CR LF", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\r\n\r\n"},
    {"obs-fold space", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"},
    {"obs-fold tab", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n"},
    {"space before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
    {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    // names
    {"space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
    {"tab before the colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n"},
    {"no colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"},
    {"no name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"},
    {"name in quotes", "GET / HTTP/1.1\r\nHost: a\r\n\"X\": x\r\n\r\n"},
    {"name with NUL", "GET / HTTP/1.1\r\nHost: a\r\nX\0: x\r\n\r\n"sv},
    {"name not ASCII", "GET / HTTP/1.1\r\nHost: a\r\nX\xc3\xa9: x\r\n\r\n"},
    {"name with parentheses", "GET / HTTP/1.1\r\nHost: a\r\nX(y): x\r\n\r\n"},
    // values
    {"NUL", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"sv},
    {"escape", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x1b[2Jb\r\n\r\n"},
    {"DEL", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x7f\r\n\r\n"},
    {"control far behind", "GET / HTTP/1.1\r\nHost: a\r\nX: 0123456789abcdef0123456789abcdef\x01z\r\n\r\n"},
    // Host
    {"no Host", "GET / HTTP/1.1\r\nX: y\r\n\r\n"},
    {"no headers", "GET / HTTP/1.1\r\n\r\n"},
    {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
    {"two equal Hosts", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"},
    {"two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
    {"joined Hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"},
    {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
    {"Host with a user", "GET / HTTP/1.1\r\nHost: x@a\r\n\r\n"},
    // the request line
    {"absolute form", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"authority form", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"asterisk with GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"no slash", "GET x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"fragment", "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"two spaces behind", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"tab between", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"space behind", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
    {"space in front", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with NUL", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"sv},
    {"target with DEL", "GET /0123456789abcdef\x7f HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target not ASCII", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with CR", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"method not a token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"no method", "/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"HTTP/0.9", "GET /\r\n"},
    {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
    {"HTTP/1.10", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"},
    {"HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {"lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"},
    {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv},
    // a second copy would be ambiguous
    {"two keys", "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\r\nidempotency-key: a\r\n\r\n"},
    {"two tenants", "POST / HTTP/1.1\r\nHost: a\r\nLatchkey-Tenant: a\r\nlatchkey-tenant: b\r\n\r\n"},
    {"two Authorizations", "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"},
    {"two Content-Types", "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n"},
    {"unknown Expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"},
};

TEST(Head, RefusesHostileHeads) {
  for (const auto& [why, head] : kHostile) {
    const Result<std::size_t> refused = parse(head);
    ASSERT_FALSE(refused) << why << " was read as " << *refused;
    EXPECT_EQ(refused.error().code, Code::BAD_REQUEST) << why;
    EXPECT_FALSE(refused.error().detail.empty()) << why;
  }
}

TEST(Head, PartOfHostileHeadIsNeverComplete) {
  for (const auto& [why, head] : kHostile)
    for (std::size_t size = 0; size < head.size(); ++size)
      EXPECT_TRUE(parse(head.substr(0, size)).value_or(0) == 0) << why << " at " << size;
}

TEST(Head, FindsEveryControlCharacterAtEveryPlace) {
  for (int c = 0; c < 256; ++c) {
    const bool is_allowed = c == '\t' || (c >= 0x20 && c != 0x7f);
    for (std::size_t at = 1; at < 40; ++at) {
      std::string value(41, 'v');
      value[at] = static_cast<char>(c);
      const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: " + value + "\r\n\r\n";
      EXPECT_EQ(parse(head).has_value(), is_allowed) << c << " at " << at;
      const bool is_visible = c > 0x20 && c < 0x7f && c != '#';
      const std::string target = "GET /" + value + " HTTP/1.1\r\nHost: a\r\n\r\n";
      EXPECT_EQ(parse(target).has_value(), is_visible) << c << " at " << at;
    }
  }
}

TEST(Head, HasLimits) {
  const auto code = [](const std::string& head) {
    const auto result = parse(head);
    return result ? std::nullopt : std::optional(result.error().code);
  };
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
  // the whole head, to the byte, and before it is complete
  const std::string fits = start + "X: " + std::string(kLimits.bytes_max - start.size() - 7, 'x') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), kLimits.bytes_max);
  EXPECT_EQ(code(fits), std::nullopt);
  EXPECT_EQ(code(start + "X: x" + fits.substr(start.size() + 3)), Code::HEADERS_TOO_LARGE);
  EXPECT_EQ(code(start + "X: " + std::string(kLimits.bytes_max, 'x')), Code::HEADERS_TOO_LARGE);
  // the request line
  EXPECT_EQ(code("GET /" + std::string(8000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n"), std::nullopt);
  EXPECT_EQ(code("GET /" + std::string(8192, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n"), Code::HEADERS_TOO_LARGE);
  EXPECT_EQ(code("GET /" + std::string(8192, 'x')), Code::HEADERS_TOO_LARGE);
  EXPECT_EQ(code(std::string(8193, 'X')), Code::HEADERS_TOO_LARGE);
  // the number of headers
  std::string many = start;
  for (std::size_t i = 1; i < kLimits.fields_max; ++i) many += "X: y\r\n";
  EXPECT_EQ(code(many + "\r\n"), std::nullopt);
  EXPECT_EQ(code(many + "X: y\r\n\r\n"), Code::HEADERS_TOO_LARGE);
}

}  // namespace
}  // namespace latchkey::http
