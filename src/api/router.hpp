// Router: which handler answers which method and path, and who may call it. The table is the API: a test holds it
// against api/openapi.yaml.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/services.hpp"

namespace latchkey::api {

enum class Access : std::uint8_t { open, open_on_loopback, viewer, service, org_admin, admin };

struct Route {
  std::string_view method;
  std::string_view before;  // the path up to {…}, or the whole path
  std::string_view name;    // what stands in the braces; empty: the path has none
  std::string_view after;   // the path behind it
  Access access = Access::viewer;
  void (*handle)(Call call) = nullptr;

  // The text that stands for the braces (empty without them); none when the path is another.
  std::optional<std::string_view> match(std::string_view path) const;
  // "/v1/runs/{id}/cancel"
  std::string pattern() const;
};

std::span<const Route> routes();

// Routes, authenticates, checks the role, calls the handler. NOT_FOUND, METHOD_NOT_ALLOWED with Allow, UNAUTHENTICATED,
// FORBIDDEN otherwise. `services` must outlive the store's callbacks.
void handle(Services& services, http::Request& request, http::Reply reply);

}  // namespace latchkey::api
