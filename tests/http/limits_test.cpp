// The server's limits: it rejects bad framing and oversized requests, and disconnects slow or excess clients.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "http/http_fixture.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class HttpLimits : public HttpTest {};

TEST_F(HttpLimits, ClosesClientsThatDoNotRead) {
  Settings settings = impatient();
  settings.threads = 1;
  settings.head_deadline = 10s;
  settings.write_deadline = 50ms;
  start([&](Request&, Reply reply) { reply.send({.body = std::string(64 * 1024 * 1024, 'x')}); }, settings);
  RawClient client(port());
  client.send(kGet);
  // The witness starts later and times out; by then the client's write deadline has passed too.
  RawClient witness(port());
  witness.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
  EXPECT_EQ(status_of(witness.read_all()), 408);
  EXPECT_LT(client.read_all().size(), 64u * 1024 * 1024);
}

TEST_F(HttpLimits, RejectsBadFramingAndCloses) {
  start(echo);
  RawClient client(port());
  client.send(kGet + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + kGet);
  EXPECT_EQ(status_of(client.read_response()), 200);
  const std::string refused = client.read_all();
  EXPECT_EQ(status_of(refused), 400);
  EXPECT_THAT(refused, HasSubstr("application/problem+json"));
  EXPECT_THAT(refused, HasSubstr(R"("code":"BAD_REQUEST")"));
  EXPECT_THAT(refused, Not(HasSubstr("200 OK"))) << "bytes after a bad request are not parsed";

  RawClient chunks(port());
  chunks.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + kGet);
  EXPECT_EQ(status_of(chunks.read_all()), 400);
}

TEST_F(HttpLimits, RejectsLargeBodiesBeforeReadingThem) {
  start(echo, {.body_bytes_max = 1000});
  RawClient announced(port());
  announced.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(announced.read_response()), 413);
  RawClient sending(port());
  sending.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n" + std::string(500'000, 'x'));
  EXPECT_THAT(sending.read_response(), HasSubstr("BODY_TOO_LARGE"))
      << "the reply arrives although the client is still sending";
  RawClient chunked(port());
  chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n");
  EXPECT_EQ(status_of(chunked.read_response()), 413);
}

TEST_F(HttpLimits, RejectsLargeHeads) {
  start(echo);
  RawClient large(port());
  large.send("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20'000, 'x'));
  EXPECT_THAT(large.read_response(), HasSubstr("HEADERS_TOO_LARGE"));
  RawClient long_target(port());
  long_target.send("GET /" + std::string(9'000, 'x'));
  EXPECT_EQ(status_of(long_target.read_response()), 431);
  RawClient many(port());
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 100; ++i) head += "X: y\r\n";
  many.send(head);
  EXPECT_EQ(status_of(many.read_response()), 431);
}

TEST_F(HttpLimits, ClosesSlowClients) {
  start(echo, impatient());
  RawClient slow_head(port());
  slow_head.send("GET / HTTP/1.1\r\nHost:");
  EXPECT_THAT(slow_head.read_all(), HasSubstr("REQUEST_TIMEOUT"));
  RawClient slow_body(port());
  slow_body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell");
  EXPECT_EQ(status_of(slow_body.read_all()), 408);
  RawClient slow_chunks(port());
  slow_chunks.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n");
  EXPECT_EQ(status_of(slow_chunks.read_all()), 408);
  RawClient silent(port());
  EXPECT_EQ(silent.read_all(), "") << "a client that sends no request gets no reply";
  RawClient idle(port());
  idle.send(kGet);
  EXPECT_EQ(body_of(idle.read_all()), "GET / ") << "the idle connection is closed after its reply";
}

TEST_F(HttpLimits, SlowBytesDoNotExtendHeadDeadline) {
  start(echo, impatient());
  RawClient client(port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\n");
  while (!client.has_input_within(10ms)) client.send("X: y\r\n");
  EXPECT_EQ(status_of(client.read_response()), 408);
}

TEST_F(HttpLimits, LimitsConnections) {
  start(echo, {.connections_max = 2});
  RawClient first(port()), second(port());
  for (RawClient* client : {&first, &second}) {
    client->send(kGet);
    EXPECT_EQ(status_of(client->read_response()), 200);
  }
  RawClient third(port());
  const std::string refused = third.read_all();
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  first.send(kGet);
  EXPECT_EQ(status_of(first.read_response()), 200);
}

TEST_F(HttpLimits, LimitsRequestsInFlight) {
  std::promise<Reply> pending;
  // There is one thread: it has counted the first request before it reads the second.
  start([&](Request&, Reply reply) { pending.set_value(std::move(reply)); }, {.threads = 1, .in_flight_max = 1});
  RawClient first(port()), second(port());
  first.send(kGet);
  Reply reply = pending.get_future().get();
  second.send(kGet);
  const std::string refused = second.read_response();
  EXPECT_THAT(refused, HasSubstr("OVERLOADED"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  reply.send({.body = "done"});
  EXPECT_EQ(body_of(first.read_response()), "done");
}

class HttpPaused : public HttpTest {
 protected:
  // The machine's clock; `leap` adds elapsed time.
  class LeapingClock final : public Clock {
   public:
    Instant now() override { return system_.now(); }
    Duration elapsed() override { return system_.elapsed() + Duration{leapt_ms_.load()}; }
    Task<void> wait(Duration span) override { return system_.wait(span); }
    void leap(Duration span) { leapt_ms_ += span.count(); }

   private:
    SystemClock system_;
    std::atomic<std::int64_t> leapt_ms_{0};
  };
  ~HttpPaused() override { server_.reset(); }

  LeapingClock leaping_clock_;
};

// After a SIGSTOP or a suspended machine, only connections from before the pause count as idle.
TEST_F(HttpPaused, NewClientIsNotIdleAfterAPause) {
  auto started = Server::start({.threads = 1}, echo, leaping_clock_);
  ASSERT_TRUE(started) << to_string(started.error());
  server_ = std::move(*started);
  // There is one thread: once the second connection has its reply, the first one is registered as idle.
  RawClient idle(port()), second(port());
  for (RawClient* each : {&idle, &second}) {
    each->send(kGet);
    EXPECT_EQ(status_of(each->read_response()), 200);
  }
  leaping_clock_.leap(2 * Settings{}.idle_deadline);
  RawClient client(port());
  client.send(kGet);
  EXPECT_EQ(status_of(client.read_response()), 200);
  EXPECT_EQ(idle.read_all(), "") << "the server has checked deadlines, and the old connection's had passed";
  client.send(kGet);
  EXPECT_EQ(status_of(client.read_response()), 200);
}

}  // namespace
}  // namespace latchkey::http
