#include <gtest/gtest.h>

#include <latch>

#include "http/outgoing_fixture.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;
using Outgoing = OutgoingTest;

TEST_F(Outgoing, SendsExactlyTheRequest) {
  const RawListener listener;
  auto result = begin({.method = "PUT",
                       .url = url(listener.port(), "/x?y=1#z"),
                       .headers = {{"Idempotency-Key", "k"}, {"Empty", ""}},
                       .body = "four"});
  RawPeer peer = listener.accept();
  EXPECT_EQ(peer.read_until("four"), "PUT /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(listener.port()) +
                                         "\r\nUser-Agent: latchkey/0.1.0\r\nAccept: */*\r\nIdempotency-Key: k\r\n"
                                         "Empty:\r\nContent-Length: 4\r\n\r\nfour");
  peer.send("HTTP/1.1 201 Created\r\nA: b\r\nA: c\r\nContent-Length: 2\r\n\r\nok");
  const OutgoingResult got = result.get();
  ASSERT_EQ(to_text(got), "201 ok");
  const auto& response = std::get<OutgoingResponse>(got);
  ASSERT_EQ(response.headers.size(), 3u);
  EXPECT_EQ(response.headers[1].value, "c");
  EXPECT_EQ(response.find("content-length"), "2");
  EXPECT_FALSE(response.headers_truncated || response.body_truncated);
}

TEST_F(Outgoing, SendsEveryMethodOnOneHandle) {
  start(echo);
  use({.connections_max = 1});
  for (int round = 0; round < 2; ++round) {
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"})
      EXPECT_EQ(to_text(call({.method = method, .url = url(port(), "/a")})), "200 " + std::string(method) + " /a ");
    EXPECT_EQ(to_text(call({.method = "HEAD", .url = url(port())})), "200 ");
    EXPECT_EQ(to_text(call({.method = "GET", .url = url(port()), .body = "b"})), "200 GET / b");
  }
}

TEST_F(Outgoing, MovesLargeBodies) {
  start(echo, {.body_bytes_max = 4 * 1024 * 1024});
  const std::string body(3 * 1024 * 1024, 'x');
  const OutgoingResult result = call({.url = url(port()), .body = body, .body_bytes_max = 4 * 1024 * 1024});
  EXPECT_EQ(std::get<OutgoingResponse>(result).body, "POST / " + body);
}

TEST_F(Outgoing, RefusedConnectionIsNotSent) {
  start(echo);
  const std::uint16_t unused = port();
  server_.reset();
  EXPECT_EQ(to_kind(call({.url = url(unused)})), "NotSent connect");
}

TEST_F(Outgoing, InvalidRequestIsNotSent) {
  for (const char* bad : {"", "nonsense://a", "ftp://127.0.0.1/", "file:///etc/hosts", "http://", "http://a b/"})
    EXPECT_EQ(to_kind(call({.url = bad})), "NotSent invalid_request") << bad;
  const std::string good = url(1);
  EXPECT_EQ(to_kind(call({.method = "A B", .url = good})), "NotSent invalid_request");
  EXPECT_EQ(to_kind(call({.method = "HEAD", .url = good, .body = "b"})), "NotSent invalid_request");
  EXPECT_EQ(to_kind(call({.url = good, .headers = {{"A", "b\r\nC: d"}}})), "NotSent invalid_request");
}

TEST_F(Outgoing, UnknownHostIsNotSent) {
  EXPECT_EQ(to_kind(call({.url = "http://does-not-exist.invalid/"})), "NotSent name_lookup");
}

TEST_F(Outgoing, IncompleteResponseIsUnknown) {
  for (const char* sent :
       {"", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Len", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok"}) {
    const RawListener listener;
    auto result = begin({.url = url(listener.port())});
    RawPeer peer = listener.accept();
    peer.read_head();
    peer.send(sent);
    peer.close();
    EXPECT_EQ(to_kind(result.get()), "Unknown connection_closed") << sent;
    EXPECT_FALSE(listener.has_connection());
  }
}

TEST_F(Outgoing, ResetAfterRequestIsUnknown) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port())});
  RawPeer peer = listener.accept();
  peer.read_head();
  peer.reset();
  EXPECT_EQ(to_kind(result.get()), "Unknown connection_closed");
  EXPECT_FALSE(listener.has_connection());
}

TEST_F(Outgoing, MalformedResponseIsUnknown) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port())});
  RawPeer peer = listener.accept();
  peer.read_head();
  peer.send("nonsense\r\n\r\n");
  EXPECT_EQ(to_kind(result.get()), "Unknown bad_response");
}

TEST_F(Outgoing, ResponseBodyMayEndWithTheConnection) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port())});
  RawPeer peer = listener.accept();
  peer.read_head();
  peer.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\r\n\r\nuntil the end");
  peer.close();
  EXPECT_EQ(to_text(result.get()), "200 until the end");
}

TEST_F(Outgoing, EarlyResponseIsRead) {
  start(echo, {.body_bytes_max = 1024});
  EXPECT_EQ(to_text(call({.url = url(port()), .body = std::string(256 * 1024, 'x')})).substr(0, 4), "413 ");
}

TEST_F(Outgoing, TimeoutAfterRequestIsUnknown) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port()), .timeout = 50ms});
  RawPeer peer = listener.accept();
  EXPECT_EQ(to_kind(result.get()), "Unknown timeout");
  EXPECT_FALSE(peer.read_all().empty());
}

TEST_F(Outgoing, TrickledBodyEndsAtTheTimeout) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port()), .timeout = 100ms});
  RawPeer peer = listener.accept();
  peer.read_head();
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  while (result.wait_for(5ms) != std::future_status::ready) peer.send("1\r\nx\r\n");
  EXPECT_EQ(to_kind(result.get()), "Unknown timeout");
}

TEST_F(Outgoing, ConnectTimeoutIsNotSent) {
  const RawListener listener(0);  // its queue has room for one connection; the kernel ignores further ones
  const RawClient first(listener.port());
  EXPECT_EQ(to_kind(call({.url = url(listener.port()), .connect_timeout = 50ms})), "NotSent timeout");
}

TEST_F(Outgoing, EndlessBodyIsTruncated) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port()), .body_bytes_max = 10});
  RawPeer peer = listener.accept();
  peer.read_head();
  peer.send("HTTP/1.1 200 OK\r\n\r\n");
  while (result.wait_for(0ms) != std::future_status::ready) peer.send(std::string(100, 'x'));
  const OutgoingResult got = result.get();
  EXPECT_EQ(to_text(got), "200 xxxxxxxxxx");
  EXPECT_TRUE(std::get<OutgoingResponse>(got).body_truncated);
  peer.read_all();  // the client has closed the connection
}

TEST_F(Outgoing, BodyAtItsLimitIsComplete) {
  start(echo);
  const OutgoingResult got = call({.url = url(port()), .body = "b", .body_bytes_max = 8});
  EXPECT_EQ(to_text(got), "200 POST / b");
  EXPECT_FALSE(std::get<OutgoingResponse>(got).body_truncated);
}

TEST_F(Outgoing, ManyHeadersAreTruncated) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "H" + std::to_string(i) + ": " + std::string(1000, 'x') + "\r\n";
  start([&](Request&, Reply reply) { reply.send({.header_lines = lines, .body = "ok"}); });
  const auto response_of = [&](OutgoingSettings settings) {
    use(std::move(settings));
    return std::get<OutgoingResponse>(call({.url = url(port())}));
  };
  const OutgoingResponse all = response_of({});
  EXPECT_FALSE(all.headers_truncated);
  EXPECT_EQ(all.find("H39")->size(), 1000u);
  const OutgoingResponse few_bytes = response_of({.header_bytes_max = 20 * 1024});
  EXPECT_TRUE(few_bytes.headers_truncated);
  EXPECT_TRUE(few_bytes.find("H5"));
  EXPECT_FALSE(few_bytes.find("H39"));
  EXPECT_EQ(few_bytes.body, "ok");
  EXPECT_EQ(response_of({.headers_max = 3}).headers.size(), 3u);
}

TEST_F(Outgoing, EndlessHeadersAreUnknown) {
  const RawListener listener;
  auto result = begin({.url = url(listener.port())});
  RawPeer peer = listener.accept();
  peer.read_head();
  peer.send("HTTP/1.1 200 OK\r\n");
  while (result.wait_for(0ms) != std::future_status::ready) peer.send("H: " + std::string(1000, 'x') + "\r\n");
  EXPECT_EQ(to_text(result.get()).substr(0, 8), "Unknown ");
}

TEST_F(Outgoing, CancelAbortsTheCall) {
  const RawListener listener;
  use({.connections_max = 1});
  OutgoingClient::CallId running = 0;
  OutgoingClient::CallId waiting = 0;
  auto first = begin({.url = url(listener.port())}, &running);
  RawPeer peer = listener.accept();
  peer.read_head();
  auto second = begin({.url = url(listener.port())}, &waiting);
  client().cancel(waiting);
  EXPECT_EQ(to_text(second.get()), "NotSent aborted: the call was cancelled");
  client().cancel(running);
  EXPECT_EQ(to_text(first.get()), "Unknown aborted: the call was cancelled");
  EXPECT_EQ(peer.read_all(), "");
  client().cancel(running);
  client().cancel(12345);
  auto third = begin({.url = url(listener.port())});
  RawPeer next = listener.accept();
  next.read_head();
  next.respond("free again");
  EXPECT_EQ(to_text(third.get()), "200 free again");
}

TEST_F(Outgoing, DestructorAbortsOpenCalls) {
  const RawListener listener;
  use({.connections_per_host_max = 1});
  auto first = begin({.url = url(listener.port())});
  RawPeer peer = listener.accept();
  peer.read_head();
  auto second = begin({.url = url(listener.port())});
  client_.reset();
  EXPECT_EQ(to_text(first.get()), "Unknown aborted: the client stopped");
  EXPECT_EQ(to_text(second.get()), "NotSent aborted: the client stopped");
  EXPECT_EQ(peer.read_all(), "");
}

TEST_F(Outgoing, WaitingCallTimesOut) {
  const RawListener listener;
  use({.connections_per_host_max = 1});
  auto first = begin({.url = url(listener.port())});
  RawPeer peer = listener.accept();
  EXPECT_EQ(to_text(call({.url = url(listener.port()), .timeout = 20ms})),
            "NotSent timeout: no connection was free in time");
  peer.respond("still works");
  EXPECT_EQ(to_text(first.get()), "200 still works");
}

TEST_F(Outgoing, BusyHostDoesNotDelayOthers) {
  const RawListener busy;
  start(echo);
  use({.connections_max = 2, .connections_per_host_max = 1});
  auto first = begin({.url = url(busy.port())});
  auto second = begin({.url = url(busy.port())});
  RawPeer peer = busy.accept();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to_text(call({.url = url(port())})), "200 POST / ");
  client_.reset();
}

TEST_F(Outgoing, ManyCallsShareFewConnections) {
  start(echo, {.connections_max = 4});  // the server responds to a fifth connection with 503
  use({.connections_per_host_max = 4});
  std::vector<std::future<OutgoingResult>> results;
  for (int i = 0; i < 500; ++i) results.push_back(begin({.url = url(port(), "/" + std::to_string(i))}));
  for (int i = 0; i < 500; ++i) EXPECT_EQ(to_text(results[i].get()), "200 POST /" + std::to_string(i) + " ");
}

TEST_F(Outgoing, CallbackMayStartTheNextCall) {
  start(echo);
  std::latch done(1);
  int left = 100;
  std::move_only_function<void()> next = [&] {
    client().start({.url = url(port())}, [&](OutgoingResult result) {
      EXPECT_EQ(to_text(result), "200 POST / ");
      if (--left == 0) return done.count_down();
      next();
    });
  };
  client();
  next();
  done.wait();
}

TEST_F(Outgoing, ThreadsMayStartAndCancel) {
  start(echo);
  client();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        OutgoingClient::CallId id = 0;
        auto result = begin({.url = url(port())}, &id);
        if (i % 2 == 0) client().cancel(id);
        const std::string kind = to_kind(result.get());
        EXPECT_TRUE(kind == "200 POST / " || kind == "NotSent aborted" || kind == "Unknown aborted") << kind;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace latchkey::http
