#include "http/cors.hpp"

#include <algorithm>

namespace latchkey::http {

Cors::Cors(CorsSettings settings)
    : settings_(std::move(settings)),
      allows_all_(std::ranges::find(settings_.origins, "*") != settings_.origins.end()) {}

bool Cors::allows(std::string_view origin) const {
  return !origin.empty() && (allows_all_ || std::ranges::find(settings_.origins, origin) != settings_.origins.end());
}

std::optional<Response> Cors::answer_preflight(const Request& request) const {
  if (!is_on() || request.method != "OPTIONS" || !request.find("access-control-request-method")) return std::nullopt;
  if (!allows(request.find("origin").value_or(""))) return std::nullopt;
  Response response{.status = 204};
  response.add_header("Access-Control-Allow-Methods", settings_.methods);
  response.add_header("Access-Control-Allow-Headers", settings_.headers);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(settings_.max_age);
  response.add_header("Access-Control-Max-Age", std::to_string(seconds.count()));
  return response;
}

std::string Cors::header_lines(std::string_view origin) const {
  if (!is_on() || !allows(origin)) return {};
  Response lines;
  lines.add_header("Access-Control-Allow-Origin", allows_all_ ? "*" : origin);
  if (!allows_all_) lines.add_header("Vary", "Origin");
  if (!settings_.exposed_headers.empty()) lines.add_header("Access-Control-Expose-Headers", settings_.exposed_headers);
  return std::move(lines.header_lines);
}

}  // namespace latchkey::http
