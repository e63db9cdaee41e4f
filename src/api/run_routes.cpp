#include "api/run_routes.hpp"

#include "api/handlers_runs.hpp"

namespace latchkey::api {

RouteGroup run_routes(RunContext& context) {
  static constexpr Route<RunContext> kRoutes[] = {
      {{"POST", "/v1/runs", Access::service}, claim_run},
      {{"POST", "/v1/runs/{id}/complete", Access::service}, complete_run},
      {{"POST", "/v1/runs/{id}/heartbeat", Access::service}, extend_run},
      {{"POST", "/v1/runs/{id}/fail", Access::service}, fail_run},
      {{"POST", "/v1/runs/{id}/release", Access::service}, release_run},
      {{"GET", "/v1/runs/{id}", Access::viewer}, find_run},
      {{"GET", "/v1/runs", Access::viewer}, list_runs},
      {{"POST", "/v1/runs/{id}/cancel", Access::service}, cancel_run},
      {{"POST", "/v1/runs/{id}/retry", Access::org_admin}, retry_run},
      {{"POST", "/v1/runs/{id}/resolve", Access::org_admin}, resolve_run},
      {{"GET", "/v1/keys", Access::viewer}, explain_key},
  };
  return {context, kRoutes};
}

}  // namespace latchkey::api
