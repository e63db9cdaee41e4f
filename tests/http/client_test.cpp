#include "http/client.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "http/http_fixture.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;

class HttpClient : public HttpTest {
 protected:
  Client client(std::uint16_t at, std::size_t reply_bytes_max = 64 * 1024 * 1024) {
    return Client(parse_url("http://127.0.0.1:" + std::to_string(at)).value(), clock_, reply_bytes_max);
  }
};

// A scripted server: for each connection it reads one head, sends the next script line and closes.
class Scripted {
 public:
  explicit Scripted(std::vector<std::string> answers) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) serve(answer);
    });
  }
  ~Scripted() {
    thread_.join();
    ::close(listener_);
  }
  std::uint16_t port() const { return port_; }
  int requests() const { return requests_; }

 private:
  void serve(const std::string& answer) {
    const int socket = ::accept(listener_, nullptr, nullptr);
    std::string request;
    char bytes[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      request.append(bytes, static_cast<std::size_t>(count));
    }
    ++requests_;
    ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(socket);
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> requests_{0};
  std::thread thread_;
};

TEST_F(HttpClient, SendsRequestsAndReadsReplies) {
  start(echo);
  Client caller = client(port());
  const ClientHeader headers[] = {{"Idempotency-Key", "k"}};
  for (int i = 0; i < 3; ++i) {
    const auto reply = caller.call("POST", "/v1?x", headers, "body", 5s);
    ASSERT_TRUE(reply) << to_string(reply.error());
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, "POST /v1?x body");
    EXPECT_EQ(reply->find("content-type"), "text/plain");
  }
  EXPECT_EQ(caller.call("HEAD", "/", {}, "", 5s)->body, "");
  EXPECT_EQ(caller.call("GET", "/", {}, "", 5s)->body, "GET / ");
  EXPECT_EQ(caller.call("PUT", "/", {}, std::string(1024 * 1024, 'x'), 5s)->body.size(), 1024 * 1024 + 6u);
}

TEST_F(HttpClient, ReconnectsWhenIdleConnectionWasClosed) {
  start(echo, {.threads = 1, .idle_deadline = 0ms, .tick = 5ms});
  Client caller = client(port());
  ASSERT_TRUE(caller.call("POST", "/1", {}, "", 5s));
  // The server closes idle connections in order. The other connection became idle later, so the client's is closed too.
  RawClient witness(port());
  witness.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  witness.read_all();
  const auto reply = caller.call("POST", "/2", {}, "", 5s);
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_EQ(reply->body, "POST /2 ");
}

TEST_F(HttpClient, NeverSendsARequestTwice) {
  Scripted server({""});
  const auto reply = client(server.port()).call("POST", "/", {}, "x", 5s);
  EXPECT_EQ(reply.error().code, Code::REPLY_LOST);
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(HttpClient, ReportsRefusedConnection) {
  std::uint16_t unused = 0;
  {
    start(echo);
    unused = port();
    server_.reset();
  }
  EXPECT_EQ(client(unused).call("GET", "/", {}, "", 5s).error().code, Code::SERVER_UNREACHABLE);
}

TEST_F(HttpClient, CallFailsAtItsDeadline) {
  std::promise<Reply> pending;
  start([&](Request&, Reply reply) { pending.set_value(std::move(reply)); });
  EXPECT_EQ(client(port()).call("GET", "/", {}, "", 50ms).error().code, Code::REPLY_LOST);
  pending.get_future().get().send({});
}

TEST_F(HttpClient, ReadsEveryKindOfReply) {
  const auto body = [&](std::string answer) {
    Scripted server({std::move(answer)});
    const auto reply = client(server.port(), 1000).call("GET", "/", {}, "", 5s);
    return reply ? reply->body : to_string(reply.error());
  };
  EXPECT_EQ(body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), "ok");
  EXPECT_EQ(body("HTTP/1.1 200\r\n\r\nuntil the end"), "until the end");
  EXPECT_EQ(body("HTTP/1.0 200 OK\r\n\r\n"), "");
  EXPECT_EQ(body("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n"), "ok!");
  EXPECT_EQ(body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), "ok");
  EXPECT_EQ(body("HTTP/1.1 204 No Content\r\n\r\n"), "");
  for (const char* bad :
       {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", "HTTP/2 200\r\n\r\n", "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "HTTP/1.1 200 OK\r\n"})
    EXPECT_TRUE(body(bad).starts_with("REPLY_LOST")) << bad;
  EXPECT_TRUE(body("HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x')).starts_with("REPLY_LOST"));
}

TEST_F(HttpClient, RejectsInputThatSplitsTheRequest) {
  Client caller = client(1);
  const ClientHeader split[] = {{"X", "a\r\nY: b"}};
  EXPECT_EQ(caller.call("GET", "/", split, "", 1s).error().code, Code::INVALID_ARGUMENT);
  for (const char* target : {"", "x", "/a b", "/a\r\nb"})
    EXPECT_EQ(caller.call("GET", target, {}, "", 1s).error().code, Code::INVALID_ARGUMENT) << target;
}

TEST(Url, IsParsed) {
  const auto url = parse_url("http://example.com:7420/base/").value();
  EXPECT_EQ(url.host, "example.com");
  EXPECT_EQ(url.port, 7420);
  EXPECT_EQ(url.authority, "example.com:7420");
  EXPECT_EQ(url.path, "/base");
  EXPECT_EQ(parse_url("HTTP://a")->port, 80);
  EXPECT_EQ(parse_url("http://[::1]:8080")->host, "::1");
  EXPECT_EQ(parse_url("http://[::1]")->authority, "[::1]");
  for (const char* bad : {"", "a", "https://a", "http://", "http://:80", "http://a:", "http://a:0", "http://a:65536",
                          "http://a:8x", "http://u@a", "http://a?b", "http://a/?b", "http://a/#b", "http://[::1",
                          "http://[]", "http://[::1]x", "http://a b", "http://a/ b"})
    EXPECT_FALSE(parse_url(bad)) << bad;
}

}  // namespace
}  // namespace latchkey::http
