// Client: a blocking HTTP/1.1 client for the command line. http:// only.
//
// Keeps its connection between calls. A request is sent once: when a kept connection turns out to be closed before any
// byte went out, the client connects anew; once a byte was handed to the kernel it never sends again, and says
// REPLY_LOST instead, for the server may have done what was asked. Not safe from two threads.
//
// Errors: SERVER_UNREACHABLE (nothing was sent), REPLY_LOST (no whole, well-formed reply came in time),
// INVALID_ARGUMENT (URL or header). A status of 400 and above is a reply, not an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace latchkey::http {

struct Url {
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 80;
  std::string authority;  // host and port as the Host header has them
  std::string path;       // what stands before a call's target; empty or "/…" without a slash at its end
};

// "http://host[:port][/path]", without user, query or fragment.
Result<Url> parse_url(std::string_view text);

struct ClientHeader {
  std::string name;
  std::string value;
};

struct ClientResponse {
  int status = 0;
  std::vector<ClientHeader> headers;
  std::string body;

  // The first header of that name, in any case.
  std::optional<std::string_view> find(std::string_view name) const;
};

class Client {
 public:
  Client(Url url, Clock& clock, std::size_t reply_bytes_max = 64 * 1024 * 1024);
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  // `target` begins with a slash. Content-Length, Host and Connection are the client's business.
  Result<ClientResponse> call(std::string_view method, std::string_view target, std::span<const ClientHeader> headers,
                              std::string_view body, Duration timeout);

 private:
  class Exchange;
  void disconnect();

  Url url_;
  Clock* clock_;
  std::size_t reply_bytes_max_;
  int socket_ = -1;
};

}  // namespace latchkey::http
