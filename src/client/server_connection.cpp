#include "client/server_connection.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "wire/run_reader.hpp"

namespace latchkey {
namespace {

constexpr Duration kTimeout = std::chrono::seconds{15};

std::optional<Duration> read_retry_after(const http::ClientResponse& response) {
  const auto header = response.find("Retry-After");
  std::int64_t seconds = 0;
  if (!header || std::from_chars(header->data(), header->data() + header->size(), seconds).ec != std::errc{})
    return std::nullopt;
  return std::chrono::seconds{seconds};
}

}  // namespace

std::string ServerLogin::read_token() const {
  if (!token.empty() || key_file.empty()) return token;
  std::ifstream file(key_file);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

Error ServerReply::error() const {
  const std::string name = wire::text(body, "code");
  std::string detail = wire::text(body, "detail");
  if (detail.empty()) detail = wire::text(body, "title");
  if (const auto code = find_code(name)) return {*code, std::move(detail)};
  return {Code::INTERNAL, fmt::format("the server replied {} {} {}", status, name, detail)};
}

Result<ServerConnection> ServerConnection::at(const std::string& address, const ServerLogin& login, Clock& clock) {
  auto url = http::parse_url(address);
  if (!url) return std::unexpected(url.error());
  return ServerConnection(http::Client(*std::move(url), clock), login.read_token(), login.tenant);
}

Result<ServerReply> ServerConnection::call(std::string_view method, const std::string& target, const std::string& body,
                                           std::vector<http::ClientHeader> headers) {
  if (!token_.empty()) headers.push_back({"Authorization", "Bearer " + token_});
  if (tenant_) headers.push_back({"Latchkey-Tenant", *tenant_});
  if (!body.empty()) headers.push_back({"Content-Type", "application/json"});
  auto response = client_.call(method, target, headers, body, kTimeout);
  if (!response) return std::unexpected(response.error());
  ServerReply reply{.status = response->status, .body = {}, .retry_after = read_retry_after(*response)};
  const std::string_view text = response->body.empty() ? std::string_view("{}") : std::string_view(response->body);
  if (parser_.parse(simdjson::padded_string(text)).get(reply.body) != simdjson::SUCCESS)
    return fail(Code::REPLY_LOST, fmt::format("the server replied {} with a body that is not JSON", reply.status));
  return reply;
}

Result<simdjson::dom::element> ServerConnection::call_or_fail(std::string_view method, const std::string& target,
                                                              const std::string& body) {
  const auto reply = call(method, target, body);
  if (!reply) return std::unexpected(reply.error());
  if (!reply->is_good()) return std::unexpected(reply->error());
  return reply->body;
}

}  // namespace latchkey
