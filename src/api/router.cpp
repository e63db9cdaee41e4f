#include "api/router.hpp"

#include <array>

#include "api/handlers.hpp"

namespace latchkey::api {
namespace {

// What is called most stands first.
constexpr std::array kRoutes{
    Route{"POST", "/v1/runs", "", "", Access::service, claim_run},
    Route{"POST", "/v1/runs/", "id", "/complete", Access::service, complete_run},
    Route{"POST", "/v1/runs/", "id", "/heartbeat", Access::service, extend_run},
    Route{"POST", "/v1/runs/", "id", "/fail", Access::service, fail_run},
    Route{"POST", "/v1/runs/", "id", "/release", Access::service, release_run},
    Route{"GET", "/v1/runs/", "id", "", Access::viewer, find_run},
    Route{"GET", "/v1/runs", "", "", Access::viewer, list_runs},
    Route{"POST", "/v1/runs/", "id", "/cancel", Access::service, cancel_run},
    Route{"POST", "/v1/runs/", "id", "/retry", Access::org_admin, retry_run},
    Route{"POST", "/v1/runs/", "id", "/resolve", Access::org_admin, resolve_run},
    Route{"GET", "/v1/keys", "", "", Access::viewer, explain_key},
    Route{"GET", "/v1/dead-letters", "", "", Access::viewer, list_dead_letters},
    Route{"GET", "/v1/dead-letters/", "id", "", Access::viewer, find_dead_letter},
    Route{"POST", "/v1/dead-letters/", "id", "/acknowledge", Access::org_admin, acknowledge_dead_letter},
    Route{"POST", "/v1/dead-letters/", "id", "/retry", Access::org_admin, retry_dead_letter},
    Route{"POST", "/v1/dead-letters/", "id", "/resolve", Access::org_admin, resolve_dead_letter},
    Route{"GET", "/v1/tokens", "", "", Access::org_admin, list_tokens},
    Route{"POST", "/v1/tokens", "", "", Access::org_admin, create_token},
    Route{"DELETE", "/v1/tokens/", "id", "", Access::org_admin, revoke_token},
    Route{"GET", "/healthz", "", "", Access::open, get_health},
    Route{"GET", "/readyz", "", "", Access::open, get_readiness},
    Route{"GET", "/metrics", "", "", Access::open_on_loopback, get_metrics},
    Route{"GET", "/openapi.json", "", "", Access::open, get_openapi},
    Route{"GET", "/errors/", "code", "", Access::open, get_error},
};

// What HTTP says of HEAD: GET without a body, which the server leaves out.
std::string_view method_of(const http::Request& request) { return request.method == "HEAD" ? "GET" : request.method; }

bool is_open(Access access, const http::Request& request) {
  return access == Access::open || (access == Access::open_on_loopback && request.is_loopback);
}

bool allows(Access access, Role role) {
  switch (access) {
    case Access::open:
    case Access::viewer:
      return true;
    case Access::service:
      return role >= Role::service;
    case Access::org_admin:
      return role >= Role::org_admin;
    case Access::open_on_loopback:
    case Access::admin:
      return role == Role::admin;
  }
  return false;
}

void refuse_unknown(const http::Request& request, Answer answer) {
  std::string allowed;
  for (const Route& route : kRoutes) {
    if (!route.match(request.path)) continue;
    allowed.append(allowed.empty() ? "" : ", ").append(route.method);
    if (route.method == "GET") allowed.append(", HEAD");
  }
  if (allowed.empty()) return answer.send_error({Code::NOT_FOUND, ""});
  http::Response response = http::make_problem({Code::METHOD_NOT_ALLOWED, "the path takes " + allowed});
  response.add_header("Allow", allowed);
  answer.send(std::move(response));
}

void authorize_and_call(const Route& route, Call call) {
  if (!is_open(route.access, call.request)) {
    auto principal = call.services.tokens.authenticate(call.request.find("authorization"), call.services.store.now());
    if (!principal) return call.answer.send_error(principal.error());
    if (!allows(route.access, (*principal)->role))
      return call.answer.send_error(
          {Code::FORBIDDEN, "the role " + std::string(to_string((*principal)->role)) + " does not allow this"});
    call.principal = std::move(*principal);
  }
  route.handle(std::move(call));
}

}  // namespace

std::optional<std::string_view> Route::match(std::string_view path) const {
  if (name.empty()) return path == before ? std::optional(std::string_view{}) : std::nullopt;
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after)) return {};
  const std::string_view middle = path.substr(before.size(), path.size() - before.size() - after.size());
  if (middle.find('/') != middle.npos) return {};
  return middle;
}

std::string Route::pattern() const {
  if (name.empty()) return std::string(before);
  return std::string(before) + "{" + std::string(name) + "}" + std::string(after);
}

std::span<const Route> routes() { return kRoutes; }

void handle(Services& services, http::Request& request, http::Reply reply) {
  const std::string_view method = method_of(request);
  Answer answer(services, std::move(reply));
  for (const Route& route : kRoutes) {
    if (route.method != method) continue;
    if (const auto parameter = route.match(request.path))
      return authorize_and_call(route, {services, request, nullptr, *parameter, std::move(answer)});
  }
  refuse_unknown(request, std::move(answer));
}

}  // namespace latchkey::api
