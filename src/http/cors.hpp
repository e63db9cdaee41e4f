// Cross-origin requests (the Fetch standard's CORS protocol), by configuration; off while no origin is listed.
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
  std::string methods = "GET, POST, PUT, PATCH, DELETE, OPTIONS";  // what a preflight allows
  std::string headers =                                            // which request headers a preflight allows
      "authorization, content-type, idempotency-key, latchkey-tenant, x-client-info, apikey";
  std::string exposed_headers = "idempotent-replayed, location, retry-after";  // what scripts may read
  Duration max_age = std::chrono::hours{2};                                    // how long a preflight may be remembered
};

// Immutable: safe from any thread.
class Cors {
 public:
  explicit Cors(CorsSettings settings);

  bool is_on() const { return !settings_.origins.empty(); }
  // The answer to a preflight of a listed origin; none for every other request.
  std::optional<Response> answer_preflight(const Request& request) const;
  // Header lines for the response to a request of this origin; empty when it is not listed.
  std::string header_lines(std::string_view origin) const;

 private:
  bool allows(std::string_view origin) const;

  CorsSettings settings_;
  bool allows_all_ = false;
};

}  // namespace latchkey::http
