// Cors: cross-origin requests (the CORS protocol of the Fetch standard). Off while the settings list no origin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "http/message.hpp"

namespace latchkey::http {

struct CorsSettings {
  std::vector<std::string> origins;  // exact, such as "https://app.example.com", or "*" for all; empty turns CORS off
  std::string methods = "GET, POST, PUT, PATCH, DELETE, OPTIONS";  // methods that a preflight allows
  std::string headers =                                            // request headers that a preflight allows
      "authorization, content-type, idempotency-key, latchkey-tenant, x-client-info, apikey";
  std::string exposed_headers = "idempotent-replayed, location, retry-after";  // response headers that scripts may read
  Duration max_age = std::chrono::hours{2};  // how long a browser may cache a preflight
};

// Immutable, so any thread may call it.
class Cors {
 public:
  explicit Cors(CorsSettings settings);

  bool is_on() const { return !settings_.origins.empty(); }
  // Returns the response to a preflight of a listed origin, and nothing for every other request.
  std::optional<Response> answer_preflight(const Request& request) const;
  // Returns the header lines for a response to this origin. Empty when the origin is not listed.
  std::string header_lines(std::string_view origin) const;

 private:
  bool allows(std::string_view origin) const;

  CorsSettings settings_;
  bool allows_all_ = false;
};

}  // namespace latchkey::http
