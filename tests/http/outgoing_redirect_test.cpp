#include <gtest/gtest.h>

#include "http/outgoing_fixture.hpp"

namespace latchkey::http {
namespace {

class OutgoingRedirect : public OutgoingTest {
 protected:
  // /N/STATUS redirects N times with the status, then echoes with the Authorization header.
  static void redirect(Request& request, Reply reply) {
    const int left = request.target[1] - '0';
    const std::string status(request.target.substr(3, 3));
    if (left > 0)
      return reply.send({.status = std::stoi(status),
                         .header_lines = "Location: /" + std::to_string(left - 1) + "/" + status + "\r\n"});
    reply.send({.body = std::string(request.method) + " " + request.take_body() + " " +
                        std::string(request.find("Authorization").value_or("none"))});
  }
  OutgoingRequest request(const std::string& target, unsigned redirects_max) const {
    return {.method = "PUT",
            .url = url(port(), target),
            .headers = {{"Authorization", "secret"}},
            .body = "body",
            .redirects_max = redirects_max};
  }
};

TEST_F(OutgoingRedirect, FollowsUpToTheLimit) {
  start(redirect);
  EXPECT_EQ(to_text(call(request("/2/307", 2))), "200 PUT body secret");
  EXPECT_EQ(to_text(call(request("/2/308", 2))), "200 PUT body secret");
  const OutgoingResult third = call(request("/3/307", 2));
  EXPECT_EQ(to_text(third), "307 ");
  EXPECT_EQ(std::get<OutgoingResponse>(third).find("Location"), "/0/307");
  EXPECT_EQ(to_text(call(request("/1/307", 0))), "307 ");
}

TEST_F(OutgoingRedirect, OtherStatusesAreNotFollowed) {
  start(redirect);
  for (const char* status : {"301", "302", "303", "300"})
    EXPECT_EQ(to_text(call(request(std::string("/1/") + status, 5))), std::string(status) + " ");
}

TEST_F(OutgoingRedirect, OtherOriginGetsNoCredentials) {
  start(redirect);
  const RawListener other;
  const std::string port_text = std::to_string(other.port());
  auto result = begin({.url = "http://user:password@127.0.0.1:" + port_text + "/",
                       .headers = {{"authorization", "secret"}, {"Cookie", "c"}, {"Host", "name"}, {"X", "y"}},
                       .redirects_max = 1});
  RawPeer peer = other.accept();
  EXPECT_TRUE(peer.read_head().find("authorization: secret") != std::string::npos);
  const RawListener target;
  peer.send("HTTP/1.1 307 T\r\nLocation: //127.0.0.1:" + std::to_string(target.port()) +
            "/t\r\nContent-Length: 0\r\n\r\n");
  RawPeer second = target.accept();
  EXPECT_EQ(second.read_head(),
            "POST /t HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(target.port()) +
                "\r\nUser-Agent: latchkey/0.1.0\r\nAccept: */*\r\nX: y\r\nContent-Length: 0\r\n\r\n");
  second.respond("ok");
  EXPECT_EQ(to_text(result.get()), "200 ok");
}

TEST_F(OutgoingRedirect, OtherSchemesAreNotFollowed) {
  start([](Request&, Reply reply) { reply.send({.status = 307, .header_lines = "Location: file:///etc/hosts\r\n"}); });
  EXPECT_EQ(to_text(call(request("/", 5))), "307 ");
}

TEST_F(OutgoingRedirect, UnreachableTargetIsNotSent) {
  std::uint16_t unused = 0;
  {
    const RawListener closed;
    unused = closed.port();
  }
  start(
      [&](Request&, Reply reply) { reply.send({.status = 308, .header_lines = "Location: " + url(unused) + "\r\n"}); });
  EXPECT_EQ(to_kind(call(request("/", 1))), "NotSent connect");
}

}  // namespace
}  // namespace latchkey::http
