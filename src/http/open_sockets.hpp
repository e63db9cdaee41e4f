// OpenSockets: the sockets that libcurl has opened, by the addresses of both ends.
//
// libcurl 7.88 reuses a connection that the server has reset, and a TLS connection that the server has closed with an
// alert. With this the client checks a connection itself before it sends. Used by one thread.
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace latchkey::http {

// As libcurl reports them, as text.
struct SocketEnds {
  std::string_view local_address;
  std::string_view remote_address;
  int local_port = 0;
  int remote_port = 0;
};

class OpenSockets {
 public:
  // For CURLOPT_OPENSOCKETFUNCTION. Returns CURL_SOCKET_BAD when the kernel has no socket.
  static curl_socket_t open(const curl_sockaddr& address);
  // For CURLOPT_CLOSESOCKETFUNCTION, with the OpenSockets as data. The data must outlive the connections.
  static int on_close(void* self, curl_socket_t socket);

  // Remembers the ends of a connected socket.
  void add(const SocketEnds& ends, curl_socket_t socket);
  // CURL_SOCKET_BAD when unknown.
  curl_socket_t find(const SocketEnds& ends) const;

 private:
  struct Entry {
    curl_socket_t socket = CURL_SOCKET_BAD;
    std::string local_address;
    std::string remote_address;
    int remote_port = 0;
  };

  std::unordered_multimap<int, Entry> by_local_port_;
  std::unordered_map<curl_socket_t, int> local_ports_;
};

int local_port_of(curl_socket_t socket);

// The state of an idle connection.
enum class IdleProtocol {
  plain_http,  // nothing may arrive on it
  tls,         // the server may send records, such as session tickets
};

// Whether an idle connection can carry a request. It cannot when the server closed it, or sent bytes that would be
// taken for the response.
bool is_usable(curl_socket_t socket, IdleProtocol protocol);

}  // namespace latchkey::http
