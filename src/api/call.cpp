#include "api/call.hpp"

#include <spdlog/spdlog.h>

namespace latchkey::api {
namespace {

std::optional<Duration> retry_after_of(Code code) {
  switch (code) {
    case Code::STORE_FULL:
    case Code::STORE_UNAVAILABLE:
    case Code::STORE_LOCKED:
    case Code::SHUTTING_DOWN:
    case Code::OVERLOADED:
      return std::chrono::seconds{2};
    default:
      return std::nullopt;
  }
}

}  // namespace

void Answer::send(http::Response response) {
  services_->telemetry.count_response(response.status);
  if (!label_.empty()) spdlog::debug("{} {}", label_, response.status);
  reply_.send(std::move(response));
}

void Answer::send_json(int status, std::string body) {
  send({.status = status, .content_type = "application/json", .body = std::move(body)});
}

void Answer::send_error(const Error& error) { send_problem(error, {}, retry_after_of(error.code)); }

void Answer::send_problem(const Error& error, std::span<const http::ProblemMember> extra,
                          std::optional<Duration> retry_after) {
  if (error.code == Code::STORE_FULL || error.code == Code::STORE_UNAVAILABLE) services_->telemetry.count_store_error();
  http::Response response = http::make_problem(error, extra, retry_after);
  if (error.code == Code::UNAUTHENTICATED) response.add_header("WWW-Authenticate", "Bearer realm=\"latchkey\"");
  send(std::move(response));
}

Result<std::optional<std::string>> Call::find_tenant(std::string_view named) {
  auto found = api::find_tenant(*principal, request, named);
  if (found) tenant = *found;
  return found;
}

std::string queue_of(const Call& call) {
  if (call.tenant) return *call.tenant;
  if (!call.principal) return std::string(call.request.path);  // differs from every tenant: their names have no slash
  return call.principal->tenants.empty() ? "*" : call.principal->tenants.front();
}

RunId id_of(const Call& call) { return parse_uuid(call.parameter).value_or(RunId{}); }

}  // namespace latchkey::api
