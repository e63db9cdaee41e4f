#include "http/open_sockets.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace latchkey::http {

curl_socket_t OpenSockets::open(const curl_sockaddr& address) {
  return ::socket(address.family, address.socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.protocol);
}

int OpenSockets::on_close(void* self, curl_socket_t socket) {
  auto& sockets = *static_cast<OpenSockets*>(self);
  if (const auto known = sockets.local_ports_.find(socket); known != sockets.local_ports_.end()) {
    const auto [first, last] = sockets.by_local_port_.equal_range(known->second);
    for (auto entry = first; entry != last; ++entry)
      if (entry->second.socket == socket) {
        sockets.by_local_port_.erase(entry);
        break;
      }
    sockets.local_ports_.erase(known);
  }
  return ::close(socket);
}

void OpenSockets::add(const SocketEnds& ends, curl_socket_t socket) {
  local_ports_.emplace(socket, ends.local_port);
  by_local_port_.emplace(ends.local_port, Entry{.socket = socket,
                                                .local_address = std::string(ends.local_address),
                                                .remote_address = std::string(ends.remote_address),
                                                .remote_port = ends.remote_port});
}

curl_socket_t OpenSockets::find(const SocketEnds& ends) const {
  const auto [first, last] = by_local_port_.equal_range(ends.local_port);
  for (auto at = first; at != last; ++at) {
    const Entry& entry = at->second;
    if (entry.remote_port == ends.remote_port && entry.remote_address == ends.remote_address &&
        entry.local_address == ends.local_address)
      return entry.socket;
  }
  return CURL_SOCKET_BAD;
}

int local_port_of(curl_socket_t socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  // The port is at the same place for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool is_usable(curl_socket_t socket, IdleProtocol protocol) {
  if (socket == CURL_SOCKET_BAD) return false;
  pollfd state{.fd = socket, .events = POLLIN | POLLRDHUP, .revents = 0};
  if (::poll(&state, 1, 0) == 0) return true;
  return state.revents == POLLIN && protocol == IdleProtocol::tls;
}

}  // namespace latchkey::http
