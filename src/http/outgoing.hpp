// OutgoingRequest, OutgoingResult and OutgoingSettings: the input, the result and the limits of an OutgoingClient.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.hpp"

namespace latchkey::http {

struct OutgoingHeader {
  std::string name;
  std::string value;
};

struct OutgoingRequest {
  std::string method = "POST";  // HEAD has no body
  std::string url;              // http:// or https://; user and password become Basic authorization
  // The client adds Host, Content-Length, User-Agent and Accept. Host, User-Agent and Accept can be replaced.
  // Content-Length, Transfer-Encoding, Connection and Expect are rejected.
  std::vector<OutgoingHeader> headers;
  std::string body;
  Duration timeout = std::chrono::seconds{60};          // from start() to the last byte, over queue and redirects
  Duration connect_timeout = std::chrono::seconds{10};  // for name lookup, TCP and TLS; part of `timeout`
  std::size_t body_bytes_max = 1024 * 1024;             // the rest of a larger response body is not read
  unsigned redirects_max = 0;                           // number of 307 and 308 that the client follows
};

struct OutgoingResponse {
  int status = 0;  // 200 to 999
  std::vector<OutgoingHeader> headers;
  std::string body;
  bool headers_truncated = false;  // headers over the limits of the settings are missing
  bool body_truncated = false;     // `body` has the first body_bytes_max bytes

  // Finds the first header of that name, ignoring case.
  std::optional<std::string_view> find(std::string_view name) const;
};

enum class CallFailure {
  invalid_request,    // URL, method or headers
  name_lookup,        // the host has no address
  connect,            // the connection was refused, or the proxy rejected it
  tls,                // the handshake failed, or the certificate is not valid
  timeout,            // OutgoingRequest::timeout or connect_timeout passed
  aborted,            // cancel(), or the client was destroyed
  connection_closed,  // before a complete response
  bad_response,       // not HTTP, or larger than libcurl accepts
};

// No byte of the request was sent: the server cannot have processed it. After a redirect this is about the last target;
// the servers before it responded with the redirect.
struct NotSent {
  CallFailure reason{};
  std::string detail;  // for people; without headers, bodies and passwords
};

// The request was sent, or part of it: the server may have processed it.
struct Unknown {
  CallFailure reason{};
  std::string detail;
};

using OutgoingResult = std::variant<OutgoingResponse, NotSent, Unknown>;

struct OutgoingSettings {
  std::size_t connections_max = 256;          // open at a time; further calls wait in the order of their start
  std::size_t connections_per_host_max = 64;  // the same for each scheme, host and port
  std::size_t header_bytes_max = 64 * 1024;   // of a response; headers beyond are dropped
  std::size_t headers_max = 200;              // of a response; headers beyond are dropped
  std::string ca_file;                        // PEM file with trusted certificates; the system's when empty
  std::string proxy;                          // URL of a proxy; none when empty
  std::string no_proxy;                       // hosts that are called directly, separated by commas
  bool proxy_from_environment = false;        // replaces the two above by http_proxy, https_proxy, no_proxy
  bool allows_http2 = true;                   // for https, where the server offers it
  std::string user_agent;                     // latchkey/VERSION when empty
};

}  // namespace latchkey::http
