// RawListener and RawPeer: the server's side of connections, played by the test byte by byte.
//
// The test thread accepts, reads and sends, so a test of an asynchronous client decides the order of all events.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::testing {

class RawPeer {
 public:
  explicit RawPeer(int socket) : socket_(socket) {}
  ~RawPeer() { close(); }
  RawPeer(RawPeer&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), input_(std::exchange(other.input_, {})) {}
  RawPeer& operator=(RawPeer&&) = delete;

  int socket() const { return socket_; }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Reads up to and including `end`. Returns what has arrived when the connection ends first.
  std::string read_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = input_.find(end)) == std::string::npos)
      if (!read_some()) return std::exchange(input_, {});
    std::string read = input_.substr(0, at + end.size());
    input_.erase(0, read.size());
    return read;
  }
  std::string read_head() { return read_until("\r\n\r\n"); }
  // Reads until the client closes the connection.
  std::string read_all() {
    while (read_some()) {
    }
    return std::exchange(input_, {});
  }
  void respond(std::string_view body) const {
    send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }
  // Closes with a reset instead of an orderly end.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  bool read_some() {
    pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, 20'000) != 1) {
      ADD_FAILURE() << "nothing came within 20 s";
      return false;
    }
    char bytes[64 * 1024];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    input_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  int socket_;
  std::string input_;
};

class RawListener {
 public:
  explicit RawListener(int backlog = 16) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, backlog), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~RawListener() { ::close(socket_); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  std::uint16_t port() const { return port_; }
  RawPeer accept() const {
    pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&waited, 1, 20'000), 1) << "no connection came within 20 s";
    return RawPeer(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Whether a connection waits to be accepted.
  bool has_connection() const {
    pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&waited, 1, 0) == 1;
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

}  // namespace latchkey::testing
