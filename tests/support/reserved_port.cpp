#include "support/reserved_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.hpp"

namespace latchkey {

ReservedPort::ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int yes = 1;
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  LK_ASSERT(::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
  LK_ASSERT(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  LK_ASSERT(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  number_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() { ::close(socket_); }

}  // namespace latchkey
