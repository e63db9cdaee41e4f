// RemoteServer: calls to a server's API, JSON in and out. Errors of the connection, and answers that are no JSON, are
// errors; a problem is an answer. Not safe from two threads.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "http/client.hpp"

namespace latchkey {

// What a client sends with every request.
struct ServerLogin {
  std::string token;                  // empty: the first line of the key file
  std::string key_file;               // written by a server for its first administrator; empty: none
  std::optional<std::string> tenant;  // sent as Latchkey-Tenant

  // Empty when there is no token: the server rejects the request then.
  std::string read_token() const;
};

// Good until the next call.
struct ServerReply {
  int status = 0;
  simdjson::dom::element body;
  std::optional<Duration> retry_after;

  bool is_good() const { return status >= 200 && status < 300; }
  // Of a problem: its code and detail.
  Error error() const;
};

class RemoteServer {
 public:
  // Reads the token now. INVALID_ARGUMENT when the address is no http:// URL.
  static Result<RemoteServer> at(const std::string& address, const ServerLogin& login, Clock& clock);

  // `tenant`: sent as Latchkey-Tenant unless empty.
  Result<ServerReply> call(std::string_view method, const std::string& target, const std::string& body = "",
                           std::vector<http::ClientHeader> headers = {});
  // As call(), with problems as errors.
  Result<simdjson::dom::element> ask(std::string_view method, const std::string& target, const std::string& body = "");

 private:
  RemoteServer(http::Client client, std::string token, std::optional<std::string> tenant)
      : client_(std::move(client)), token_(std::move(token)), tenant_(std::move(tenant)) {}

  http::Client client_;
  std::string token_;
  std::optional<std::string> tenant_;
  simdjson::dom::parser parser_;
};

}  // namespace latchkey
