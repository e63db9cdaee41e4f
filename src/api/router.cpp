#include "api/router.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/assert.hpp"

namespace latchkey::api {
namespace {

// HEAD is served as GET; the HTTP server omits the body.
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

}  // namespace

Router::Router(Services& services, const std::vector<RouteGroup>& groups) : services_(services) {
  for (const RouteGroup& group : groups) routes_.insert(routes_.end(), group.routes().begin(), group.routes().end());
  for (const BoundRoute& route : routes_) add(route);
}

void Router::add(const BoundRoute& route) {
  const std::string_view path = route.path;
  const std::size_t open = path.find('{'), close = path.find('}');
  Methods* methods = nullptr;
  if (open == path.npos) {
    LK_ASSERT(close == path.npos && "a path closes a brace that it does not open");
    methods = &exact_[path];
  } else {
    const std::string_view before = path.substr(0, open);
    LK_ASSERT(before.ends_with('/') && close != path.npos && close > open + 1 && "a parameter is a whole segment");
    const std::string_view after = path.substr(close + 1);
    LK_ASSERT((after.empty() || after.starts_with('/')) && "a parameter is a whole segment");
    LK_ASSERT(after.find('{') == after.npos && "a path has at most one parameter");
    methods = &by_prefix_[before][after];
    prefix_size_max_ = std::max(prefix_size_max_, before.size());
  }
  LK_ASSERT(std::ranges::find(*methods, route.method, &BoundRoute::method) == methods->end() &&
            "two routes have the same method and path");
  methods->push_back(&route);
}

template <class Visit>
void Router::visit_matches(std::string_view path, Visit visit) const {
  if (const auto found = exact_.find(path); found != exact_.end() && visit(found->second, std::string_view{})) return;
  // No prefix is longer than the longest one known: a path of many slashes costs no more than a usual one.
  for (std::size_t slash = path.find('/'); slash < prefix_size_max_; slash = path.find('/', slash + 1)) {
    const auto prefix = by_prefix_.find(path.substr(0, slash + 1));
    if (prefix == by_prefix_.end()) continue;
    const std::string_view rest = path.substr(slash + 1);
    const std::string_view parameter = rest.substr(0, rest.find('/'));
    if (parameter.empty()) continue;
    const auto suffix = prefix->second.find(rest.substr(parameter.size()));
    if (suffix != prefix->second.end() && visit(suffix->second, parameter)) return;
  }
}

void Router::handle(http::Request& request, http::Reply reply) const {
  const std::string_view method = method_of(request);
  const BoundRoute* route = nullptr;
  std::string_view parameter;
  visit_matches(request.path, [&](const Methods& methods, std::string_view text) {
    const auto found = std::ranges::find(methods, method, &BoundRoute::method);
    if (found == methods.end()) return false;
    route = *found;
    parameter = text;
    return true;
  });
  // Without the query, which may have keys in it.
  Answer answer(
      services_, std::move(reply),
      spdlog::should_log(spdlog::level::debug) ? fmt::format("{} {}", request.method, request.path) : std::string());
  if (route == nullptr) return refuse_unmatched(request.path, std::move(answer));
  authorize_and_call(*route, {services_, request, nullptr, parameter, std::move(answer), std::nullopt});
}

void Router::authorize_and_call(const BoundRoute& route, Call call) const {
  if (!is_open(route.access, call.request)) {
    auto principal = services_.tokens.authenticate(call.request.find("authorization"), services_.store.now());
    if (!principal) return call.answer.send_error(principal.error());
    if (!allows(route.access, (*principal)->role))
      return call.answer.send_error(
          {Code::FORBIDDEN, "the role " + std::string(to_string((*principal)->role)) + " does not allow this"});
    call.principal = std::move(*principal);
  }
  route.handle(std::move(call));
}

void Router::refuse_unmatched(std::string_view path, Answer answer) const {
  std::string allowed;
  visit_matches(path, [&](const Methods& methods, std::string_view) {
    for (const BoundRoute* route : methods) {
      allowed.append(allowed.empty() ? "" : ", ").append(route->method);
      if (route->method == "GET") allowed.append(", HEAD");
    }
    return false;
  });
  if (allowed.empty()) return answer.send_error({Code::NOT_FOUND, ""});
  http::Response response = http::make_problem({Code::METHOD_NOT_ALLOWED, "the path takes " + allowed});
  response.add_header("Allow", allowed);
  answer.send(std::move(response));
}

std::vector<RouteSpec> Router::routes() const { return {routes_.begin(), routes_.end()}; }

}  // namespace latchkey::api
