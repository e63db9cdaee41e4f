// Client: a blocking HTTP/1.1 client for the command line. http:// only.
//
// The client reuses its connection for the next call. It sends each request at most once. When the server closed a
// reused connection before any byte was sent, the client connects again. Once the kernel has accepted a byte, the
// client does not send again: it fails with REPLY_LOST, because the server may have executed the request. One thread at
// a time.
//
// Errors: SERVER_UNREACHABLE (nothing was sent), REPLY_LOST (no complete, well-formed response arrived in time),
// INVALID_ARGUMENT (URL or header). A status of 400 and above is a response, not an error.
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
  std::string authority;  // the value of the Host header: host and port
  std::string path;       // prefix of every target; empty, or "/…" without a slash at its end
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

  // Finds the first header of that name, ignoring case.
  std::optional<std::string_view> find(std::string_view name) const;
};

class Client {
 public:
  Client(Url url, Clock& clock, std::size_t reply_bytes_max = 64 * 1024 * 1024);
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  // `target` begins with a slash. The client adds Host and Content-Length itself.
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
