// Reused connections: a request is sent at most once.
#include <gtest/gtest.h>

#include "http/outgoing_fixture.hpp"

namespace latchkey::http {
namespace {

class OutgoingReuse : public OutgoingTest {
 protected:
  // One call, after which the client has an idle connection.
  RawPeer connect() {
    auto result = begin({.url = url(listener_.port())});
    RawPeer peer = listener_.accept();
    peer.read_head();
    peer.respond("first");
    EXPECT_EQ(to_text(result.get()), "200 first");
    return peer;
  }
  // Expects that the next call connects again.
  void expect_reconnect() {
    auto result = begin({.url = url(listener_.port())});
    RawPeer peer = listener_.accept();
    EXPECT_TRUE(peer.read_head().starts_with("POST / "));
    peer.respond("second");
    EXPECT_EQ(to_text(result.get()), "200 second");
    EXPECT_FALSE(listener_.has_connection());
  }

  const RawListener listener_;
};

TEST_F(OutgoingReuse, NextCallUsesTheSameConnection) {
  RawPeer peer = connect();
  auto result = begin({.url = url(listener_.port())});
  EXPECT_TRUE(peer.read_head().starts_with("POST / "));
  peer.respond("second");
  EXPECT_EQ(to_text(result.get()), "200 second");
  EXPECT_FALSE(listener_.has_connection());
}

TEST_F(OutgoingReuse, CloseBeforeResponseIsUnknown) {
  RawPeer peer = connect();
  auto result = begin({.url = url(listener_.port())});
  EXPECT_TRUE(peer.read_head().starts_with("POST / "));
  peer.close();
  EXPECT_EQ(to_text(result.get()),
            "Unknown connection_closed: the server closed the reused connection before a response");
  EXPECT_FALSE(listener_.has_connection());
}

TEST_F(OutgoingReuse, ResetBeforeResponseIsUnknown) {
  RawPeer peer = connect();
  auto result = begin({.url = url(listener_.port())});
  EXPECT_TRUE(peer.read_head().starts_with("POST / "));
  peer.reset();
  EXPECT_EQ(to_kind(result.get()), "Unknown connection_closed");
  EXPECT_FALSE(listener_.has_connection());
}

TEST_F(OutgoingReuse, IsNotRepeatedOnAnotherIdleConnection) {
  auto first = begin({.url = url(listener_.port())});
  auto second = begin({.url = url(listener_.port())});
  RawPeer peers[] = {listener_.accept(), listener_.accept()};
  for (RawPeer& peer : peers) {
    peer.read_head();
    peer.respond("ok");
  }
  first.get();
  second.get();
  auto third = begin({.url = url(listener_.port())});
  pollfd ready[] = {{.fd = peers[0].socket(), .events = POLLIN}, {.fd = peers[1].socket(), .events = POLLIN}};
  ASSERT_EQ(::poll(ready, 2, 20'000), 1);
  const int used = ready[0].revents != 0 ? 0 : 1;
  EXPECT_TRUE(peers[used].read_head().starts_with("POST / "));
  peers[used].close();
  EXPECT_EQ(to_kind(third.get()), "Unknown connection_closed");
  client_.reset();
  EXPECT_EQ(peers[1 - used].read_all(), "");
  EXPECT_FALSE(listener_.has_connection());
}

TEST_F(OutgoingReuse, ClosedIdleConnectionIsReplaced) {
  connect().close();
  expect_reconnect();
}

TEST_F(OutgoingReuse, ResetIdleConnectionIsReplaced) {
  connect().reset();
  expect_reconnect();
}

TEST_F(OutgoingReuse, BytesOnAnIdleConnectionAreNoResponse) {
  const RawPeer peer = connect();
  peer.respond("not asked for");
  expect_reconnect();
}

TEST_F(OutgoingReuse, ConnectionCloseHeaderIsObeyed) {
  auto result = begin({.url = url(listener_.port())});
  RawPeer peer = listener_.accept();
  peer.read_head();
  peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(to_text(result.get()), "200 ");
  EXPECT_EQ(peer.read_all(), "");
  expect_reconnect();
}

}  // namespace
}  // namespace latchkey::http
