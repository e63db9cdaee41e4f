// The routes about the server itself: health, readiness, metrics, the OpenAPI document and error codes.
#pragma once

#include "api/readiness.hpp"
#include "api/route.hpp"
#include "api/waiters.hpp"
#include "engine/engine.hpp"

namespace latchkey::api {

struct ServerContext {
  Engine& engine;
  Waiters& waiters;
  Readiness readiness;
};

RouteGroup server_routes(ServerContext& context);

}  // namespace latchkey::api
