#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "http/http_fixture.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class HttpShutdown : public HttpTest {};

TEST_F(HttpShutdown, FinishesInFlightRequestsClosesIdle) {
  std::promise<Reply> pending;
  // There is one thread: once it has closed the idle connection, it has processed the stop for the others too.
  start(
      [&](Request& request, Reply reply) {
        if (request.path == "/wait") return pending.set_value(std::move(reply));
        echo(request, std::move(reply));
      },
      {.threads = 1});
  RawClient idle(port()), busy(port()), halfway(port());
  idle.send(kGet);
  EXPECT_EQ(status_of(idle.read_response()), 200);
  halfway.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\nPOST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no");
  EXPECT_EQ(status_of(halfway.read_response()), 200);
  busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  Reply reply = pending.get_future().get();

  std::thread stopping([&] { server_->stop(); });
  EXPECT_EQ(idle.read_all(), "") << "an idle connection is closed at once";
  halfway.send("k");
  EXPECT_THAT(halfway.read_all(), HasSubstr("Connection: close\r\n"));
  reply.send({.body = "finished"});
  const std::string answer = busy.read_all();
  EXPECT_EQ(body_of(answer), "finished");
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  busy.close();
  halfway.close();
  stopping.join();
  EXPECT_FALSE(RawClient(port()).is_connected());
}

TEST_F(HttpShutdown, StopEndsAtItsDeadline) {
  std::promise<Reply> pending;
  start([&](Request&, Reply reply) { pending.set_value(std::move(reply)); }, {.stop_deadline = 50ms, .tick = 10ms});
  RawClient client(port());
  client.send(kGet);
  Reply reply = pending.get_future().get();
  server_->stop();
  EXPECT_EQ(client.read_all(), "");
  reply.send({.body = "too late"});
}

TEST_F(HttpShutdown, ReplyMayOutliveTheServer) {
  std::promise<Reply> pending;
  start([&](Request&, Reply reply) { pending.set_value(std::move(reply)); }, {.stop_deadline = 0ms, .tick = 10ms});
  RawClient client(port());
  client.send(kGet);
  Reply reply = pending.get_future().get();
  server_.reset();
  reply.send({.body = "too late"});
}

TEST_F(HttpShutdown, StopsUnderLoad) {
  for (int round = 0; round < 5; ++round) {
    start(echo, {.stop_deadline = 5s, .tick = 10ms});
    const std::uint16_t at = port();
    std::vector<std::thread> clients;
    std::promise<void> warm;
    std::atomic<int> answered{0};
    for (int c = 0; c < 8; ++c)
      clients.emplace_back([&, at] {
        RawClient client(at);
        for (;;) {
          client.send(kGet);
          if (client.read_response().empty()) return;
          if (++answered == 100) warm.set_value();
        }
      });
    warm.get_future().wait();
    server_->stop();
    for (std::thread& client : clients) client.join();
  }
}

TEST_F(HttpShutdown, StopMayBeCalledTwice) {
  start(echo);
  server_->stop();
  server_->stop();
}

}  // namespace
}  // namespace latchkey::http
