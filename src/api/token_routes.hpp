// The routes of tokens. An admin manages any token, an org-admin those of its own tenants, never above its own role.
#pragma once

#include "api/route.hpp"
#include "base/random.hpp"

namespace latchkey::api {

struct TokenContext {
  Store& store;
  TokenTable& tokens;
  Random& random;  // must be fit for secrets
};

RouteGroup token_routes(TokenContext& context);

}  // namespace latchkey::api
