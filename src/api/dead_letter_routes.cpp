#include "api/dead_letter_routes.hpp"

#include "api/handlers_dead_letters.hpp"

namespace latchkey::api {

RouteGroup dead_letter_routes(DeadLetterContext& context) {
  static constexpr Route<DeadLetterContext> kRoutes[] = {
      {{"GET", "/v1/dead-letters", Access::viewer}, list_dead_letters},
      {{"GET", "/v1/dead-letters/{id}", Access::viewer}, find_dead_letter},
      {{"POST", "/v1/dead-letters/{id}/acknowledge", Access::org_admin}, acknowledge_dead_letter},
      {{"POST", "/v1/dead-letters/{id}/retry", Access::org_admin}, retry_dead_letter},
      {{"POST", "/v1/dead-letters/{id}/resolve", Access::org_admin}, resolve_dead_letter},
  };
  return {context, kRoutes};
}

}  // namespace latchkey::api
