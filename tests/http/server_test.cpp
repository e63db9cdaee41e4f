#include <gmock/gmock.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "http/http_fixture.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// Replies from one thread, in batches, as a database's writer does after each commit.
class Committer {
 public:
  ~Committer() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void add(std::string body, Reply reply) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(std::move(body), std::move(reply));
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      auto batch = std::exchange(waiting_, {});
      lock.unlock();
      for (auto& [body, reply] : batch) reply.send({.body = std::move(body)});
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, Reply>> waiting_;
  bool is_over_ = false;
  std::thread thread_{[this] { run(); }};
};

class HttpServer : public HttpTest {};

TEST_F(HttpServer, RepliesAndLeavesConnectionOpen) {
  start(echo);
  RawClient client(port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    const std::string response = client.read_response();
    EXPECT_EQ(status_of(response), 200);
    EXPECT_EQ(body_of(response), "POST /x?y hello");
    EXPECT_THAT(response, HasSubstr("Date: "));
    EXPECT_THAT(response, Not(HasSubstr("Connection:")));
  }
}

TEST_F(HttpServer, HandlerSeesRequestParts) {
  start([](Request& request, Reply reply) {
    reply.send({.body = std::string(request.path) + "|" + std::string(request.query) + "|" +
                        std::string(request.find("x-some").value_or("none")) + "|" + std::string(request.remote) +
                        (request.is_loopback ? "|loopback" : "")});
  });
  RawClient client(port());
  client.send("GET /a%20b?c=d HTTP/1.1\r\nHost: a\r\nX-Some: thing\r\n\r\n");
  EXPECT_EQ(body_of(client.read_response()), "/a%20b|c=d|thing|127.0.0.1|loopback");
}

TEST_F(HttpServer, RepliesToPipelinedRequestsInOrder) {
  start(echo);
  RawClient client(port());
  std::string requests, expected;
  for (int i = 0; i < 500; ++i) {
    requests += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n";
    requests += i % 2 == 0 ? "Content-Length: 3\r\n\r\nabc"
                           : "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";
  }
  std::thread sender([&] { client.send(requests); });
  for (int i = 0; i < 500; ++i) EXPECT_EQ(body_of(client.read_response()), "POST /" + std::to_string(i) + " abc");
  sender.join();
}

TEST_F(HttpServer, OrdersPipelinedRepliesFromOtherThreads) {
  std::vector<std::thread> threads;  // only the single loop thread adds to it
  start(
      [&](Request& request, Reply reply) {
        std::string target(request.target);
        if (target.ends_with("0")) return reply.send({.body = std::move(target)});
        threads.emplace_back([target, pending = std::move(reply)] mutable { pending.send({.body = target}); });
      },
      {.threads = 1});
  RawClient client(port());
  std::string requests;
  for (int i = 0; i < 50; ++i) requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  client.send(requests);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(body_of(client.read_response()), "/" + std::to_string(i));
  server_->stop();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HttpServer, ReadsRequestsByteByByte) {
  start(echo);
  RawClient client(port());
  for (const std::string_view request : {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
                                         "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                         "chunked\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\nT: x\r\n\r\n"}) {
    for (const char c : request) client.send({&c, 1});
    EXPECT_EQ(body_of(client.read_response()), "POST /a hello");
  }
}

TEST_F(HttpServer, TransfersLargeBodies) {
  start(echo);
  RawClient client(port());
  const std::string body(2 * 1024 * 1024, 'b');
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body +
              kGet);
  EXPECT_EQ(body_of(client.read_response()), "POST / " + body);
  EXPECT_EQ(body_of(client.read_response()), "GET / ");

  std::string chunks;
  for (int i = 0; i < 1024; ++i) chunks += "400\r\n" + body.substr(0, 1024) + "\r\n";
  // A head that nearly fills the buffer is moved when the body arrives.
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX: " + std::string(3950, 'x') + "\r\n\r\n");
  client.send(chunks + "0\r\n\r\n" + kGet);
  EXPECT_EQ(body_of(client.read_response()).size(), 1024 * 1024 + 7u);
  EXPECT_EQ(body_of(client.read_response()), "GET / ");
}

TEST_F(HttpServer, WaitsForClientsThatReadLate) {
  Committer committer;
  const std::string large(1024 * 1024, 'x');
  start([&](Request& request, Reply reply) {
    std::string body = std::string(request.target) + large;
    if (request.target.ends_with("0")) return reply.send({.body = std::move(body)});
    committer.add(std::move(body), std::move(reply));
  });
  RawClient client(port());
  for (int i = 0; i < 20; ++i) client.send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(body_of(client.read_response()), "/" + std::to_string(i) + large) << i;
}

TEST_F(HttpServer, RepliesToHeadWithoutBody) {
  start(echo);
  RawClient client(port());
  client.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n" + kGet);
  EXPECT_THAT(client.read_response(false), HasSubstr("Content-Length: 8\r\n"));
  EXPECT_EQ(body_of(client.read_response()), "GET / ");
}

TEST_F(HttpServer, SendsContinueOnExpect) {
  start(echo);
  RawClient client(port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_response(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(body_of(client.read_response()), "POST / ok");
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nok");
  EXPECT_EQ(body_of(client.read_response()), "POST / ok") << "the body had already arrived";
}

TEST_F(HttpServer, ClosesWhenClientRequestsIt) {
  start(echo);
  RawClient closing(port());
  closing.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + kGet);
  const std::string all = closing.read_all();
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(body_of(all), "GET / ") << "nothing follows the last reply";

  RawClient old(port());
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.read_all(), HasSubstr("Connection: close\r\n"));

  RawClient old_persistent(port());
  old_persistent.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(old_persistent.read_response(), HasSubstr("Connection: keep-alive\r\n"));
  old_persistent.send("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(old_persistent.read_all()), "GET /2 ");
}

TEST_F(HttpServer, RepliesAfterClientShutsDownItsSide) {
  start(echo);
  RawClient client(port());
  client.send(kGet);
  client.end_sending();
  EXPECT_EQ(body_of(client.read_all()), "GET / ");
}

TEST_F(HttpServer, SurvivesClientDisconnects) {
  std::promise<Reply> pending;
  start([&](Request& request, Reply reply) {
    if (request.path == "/wait") return pending.set_value(std::move(reply));
    echo(request, std::move(reply));
  });
  RawClient leaving(port());
  leaving.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  Reply reply = pending.get_future().get();
  leaving.abort();
  reply.send({.body = std::string(1024 * 1024, 'x')});
  for (const char* part : {"", "GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"}) {
    RawClient client(port());
    client.send(part);
    client.abort();
  }
  RawClient next(port());
  next.send(kGet);
  EXPECT_EQ(status_of(next.read_response()), 200);
}

TEST_F(HttpServer, RepliesForHandlersThatDropTheReply) {
  start([](Request& request, Reply reply) {
    if (request.path == "/throw") throw std::runtime_error("on purpose");
    const Reply dropped = std::move(reply);
  });
  RawClient client(port());
  for (const char* path : {"/drop", "/throw"}) {
    client.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.read_response(), HasSubstr(R"("code":"INTERNAL")")) << path;
  }
}

TEST_F(HttpServer, HandlerMayReplyToAnotherConnection) {
  std::optional<Reply> waiting;
  start(
      [&](Request& request, Reply reply) {
        if (request.path == "/wait") {
          waiting.emplace(std::move(reply));
          return;
        }
        reply.send({.body = waiting ? "for both" : "for me"});
        if (waiting) waiting->send({.body = "for you"});
        waiting.reset();
      },
      {.threads = 1});
  RawClient first(port()), second(port());
  for (int i = 0; i < 10; ++i) {
    first.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    do second.send(kGet);
    while (body_of(second.read_response()) == "for me");
    EXPECT_EQ(body_of(first.read_response()), "for you");
  }
}

TEST_F(HttpServer, ServesManyClientsFromAnotherThread) {
  Committer committer;
  start([&](Request& request, Reply reply) { committer.add(std::string(request.target), std::move(reply)); });
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int c = 0; c < 64; ++c)
    clients.emplace_back([&, c] {
      RawClient client(port());
      for (int i = 0; i < 50; ++i) {
        const std::string target = "/" + std::to_string(c) + "/" + std::to_string(i);
        client.send("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
        if (body_of(client.read_response()) == target) ++right;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 64 * 50);
  server_.reset();
}

// covers: A9
TEST_F(HttpServer, AppliesCors) {
  start(echo, {.cors = {.origins = {"https://app.example"}}});
  RawClient client(port());
  client.send(
      "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n\r\n");
  const std::string preflight = client.read_response();
  EXPECT_EQ(status_of(preflight), 204);
  EXPECT_THAT(preflight, HasSubstr("Access-Control-Allow-Origin: https://app.example\r\n"));
  client.send("GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n");
  EXPECT_THAT(client.read_response(), HasSubstr("Vary: Origin\r\n"));
  client.send("GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://other.example\r\n\r\n");
  EXPECT_THAT(client.read_response(), Not(HasSubstr("Access-Control")));
}

TEST_F(HttpServer, StartFailsOnAddressInUse) {
  start(echo);
  EXPECT_EQ(Server::start({.port = port()}, echo, clock_).error().code, Code::LISTEN_FAILED);
  EXPECT_EQ(Server::start({.address = "nowhere"}, echo, clock_).error().code, Code::LISTEN_FAILED);
}

TEST_F(HttpServer, ListensOnIpv6) {
  auto started = Server::start({.address = "::1"}, echo, clock_);
  if (started) {
    EXPECT_NE((*started)->port(), 0);
    return;
  }
  // The test may be skipped only on a machine without IPv6.
  EXPECT_EQ(started.error().code, Code::LISTEN_FAILED);
  const int file = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  EXPECT_TRUE(file < 0 || ::bind(file, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) != 0);
  if (file >= 0) ::close(file);
}

}  // namespace
}  // namespace latchkey::http
