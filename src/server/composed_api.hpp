// ComposedApi: the API of a server, composed of its features. Each feature has a context and provides its routes; a new
// feature adds one member and one route group here. All parts outlive every call.
#pragma once

#include "api/dead_letter_routes.hpp"
#include "api/router.hpp"
#include "api/run_routes.hpp"
#include "api/server_routes.hpp"
#include "api/token_routes.hpp"

namespace latchkey {

struct ComposedApi {
  ComposedApi(Engine& engine, Clock& clock, Random& random);
  ComposedApi(const ComposedApi&) = delete;
  ComposedApi& operator=(const ComposedApi&) = delete;

  api::Services services;
  api::Waiters waiters;
  api::RunContext runs;
  api::DeadLetterContext dead_letters;
  api::TokenContext tokens;
  api::ServerContext server;
  api::Router router;
};

}  // namespace latchkey
