// The routes of runs and keys: claim, settle, heartbeat, read, and an operator's actions on a run.
#pragma once

#include "api/route.hpp"
#include "api/waiters.hpp"
#include "engine/engine.hpp"

namespace latchkey::api {

struct RunContext {
  Engine& engine;
  Waiters& waiters;
};

RouteGroup run_routes(RunContext& context);

}  // namespace latchkey::api
