// Route: a method, a path, an access rule and a handler. RouteGroup: the routes of one feature, bound to its context.
//
// A feature declares a constant table of routes over its own context type and returns a RouteGroup of both. The router
// calls a handler with that context, so a handler reaches its own feature's parts and no other feature's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/call.hpp"

namespace latchkey::api {

// The caller that a route accepts. `open_on_loopback` accepts any local caller, and admins from elsewhere.
enum class Access : std::uint8_t { open, open_on_loopback, viewer, service, org_admin, admin };

struct RouteSpec {
  std::string_view method;
  std::string_view path;  // has at most one parameter, a whole segment: "/v1/runs/{id}/cancel"
  Access access = Access::viewer;
};

template <class Context>
struct Route : RouteSpec {
  void (*handle)(Context& context, Call call) = nullptr;
};

struct BoundRoute : RouteSpec {
  std::function<void(Call call)> handle;
};

class RouteGroup {
 public:
  // The context, and the texts of the routes, must outlive the router and every call.
  template <class Context>
  RouteGroup(Context& context, std::span<const Route<std::type_identity_t<Context>>> routes) {
    for (const Route<Context>& route : routes)
      routes_.push_back({route, [&context, handle = route.handle](Call call) { handle(context, std::move(call)); }});
  }

  std::span<const BoundRoute> routes() const { return routes_; }

 private:
  std::vector<BoundRoute> routes_;
};

}  // namespace latchkey::api
