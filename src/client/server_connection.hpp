// ServerConnection: calls to a server's HTTP API, with JSON in both directions. A failed connection and a reply that is
// not JSON are Errors (REPLY_LOST); a problem document is a reply. One thread at a time.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "http/client.hpp"

namespace latchkey {

// The credentials and the tenant that a client sends with every request.
struct ServerLogin {
  std::string token;                  // empty: the first line of the key file
  std::string key_file;               // the server's admin.key; empty: none
  std::optional<std::string> tenant;  // sent as Latchkey-Tenant

  // Empty when there is no token: the server rejects the request then.
  std::string read_token() const;
};

// Valid until the next call.
struct ServerReply {
  int status = 0;
  simdjson::dom::element body;
  std::optional<Duration> retry_after;

  bool is_good() const { return status >= 200 && status < 300; }
  // The code and the detail of a problem document.
  Error error() const;
};

class ServerConnection {
 public:
  // Reads the token now. Connects with the first call. INVALID_ARGUMENT when the address is no http:// URL.
  static Result<ServerConnection> at(const std::string& address, const ServerLogin& login, Clock& clock);

  Result<ServerReply> call(std::string_view method, const std::string& target, const std::string& body = "",
                           std::vector<http::ClientHeader> headers = {});
  // As call(), but a problem document becomes an Error.
  Result<simdjson::dom::element> call_or_fail(std::string_view method, const std::string& target,
                                              const std::string& body = "");

 private:
  ServerConnection(http::Client client, std::string token, std::optional<std::string> tenant)
      : client_(std::move(client)), token_(std::move(token)), tenant_(std::move(tenant)) {}

  http::Client client_;
  std::string token_;
  std::optional<std::string> tenant_;
  simdjson::dom::parser parser_;
};

}  // namespace latchkey
