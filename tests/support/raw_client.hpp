// RawClient: a TCP client for tests. It sends the given bytes unchanged and reads the response. It waits on the socket
// and does not sleep.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::testing {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_connected() const { return is_connected_; }

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Reads the next response, head and body. Later bytes stay in the buffer. Empty when the connection ends first.
  std::string read_response(bool has_body = true) {
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos)
      if (!read_some()) return {};
    std::size_t size = end + 4;
    const std::size_t length_at = input_.find("Content-Length: ");
    if (has_body && length_at < end) size += std::stoul(input_.substr(length_at + 16));
    while (input_.size() < size)
      if (!read_some()) return {};
    std::string response = input_.substr(0, size);
    input_.erase(0, size);
    return response;
  }

  // Reads until the input contains `end`, and returns the input up to and including it. Empty when the connection ends
  // first.
  std::string read_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = input_.find(end)) == std::string::npos)
      if (!read_some()) return {};
    std::string read = input_.substr(0, at + end.size());
    input_.erase(0, read.size());
    return read;
  }

  // Reads until the server closes the connection.
  std::string read_all() {
    while (read_some()) {
    }
    return std::exchange(input_, {});
  }

  bool has_input_within(std::chrono::milliseconds span) const {
    pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
    return !input_.empty() || ::poll(&waited, 1, static_cast<int>(span.count())) != 0;
  }

  // Whether the last read failed because the server reset the connection.
  bool was_reset() const { return was_reset_; }
  void end_sending() const { ::shutdown(socket_, SHUT_WR); }
  // Closes with a reset instead of an orderly end.
  void abort() {
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
      ADD_FAILURE() << "no bytes arrived within 20 s";
      return false;
    }
    char bytes[64 * 1024];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) {
      was_reset_ = count < 0 && errno == ECONNRESET;
      return false;
    }
    input_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  int socket_;
  bool is_connected_ = false;
  bool was_reset_ = false;
  std::string input_;
};

}  // namespace latchkey::testing
