// Router: finds the route of a request, checks the caller's access and calls the route's handler.
//
// Built once from the route groups of all features. Finding a route takes one hash lookup for a path without a
// parameter, and one more per segment otherwise, however many routes there are. Safe from any thread.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/route.hpp"

namespace latchkey::api {

class Router {
 public:
  // Aborts the process if two routes have the same method and path; names of parameters do not count.
  Router(Services& services, const std::vector<RouteGroup>& groups);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Replies NOT_FOUND, METHOD_NOT_ALLOWED with an Allow header, UNAUTHENTICATED or FORBIDDEN, or calls the handler.
  void handle(http::Request& request, http::Reply reply) const;
  // Every route, in the order of the groups.
  std::vector<RouteSpec> routes() const;

 private:
  using Methods = std::vector<const BoundRoute*>;  // the routes of one path
  using BySuffix = std::unordered_map<std::string_view, Methods>;

  void add(const BoundRoute& route);
  // Calls visit(methods, parameter) for each path that matches, until it returns true.
  template <class Visit>
  void visit_matches(std::string_view path, Visit visit) const;
  void authorize_and_call(const BoundRoute& route, Call call) const;
  void refuse_unmatched(std::string_view path, Answer answer) const;

  Services& services_;
  std::vector<BoundRoute> routes_;  // does not change after the constructor: the maps point into it
  std::unordered_map<std::string_view, Methods> exact_;
  // Paths with a parameter, by the text before it ("/v1/runs/") and the text behind it ("/cancel").
  std::unordered_map<std::string_view, BySuffix> by_prefix_;
  std::size_t prefix_size_max_ = 0;
};

}  // namespace latchkey::api
