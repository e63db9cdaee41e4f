// The routes of dead letters: read, acknowledge, and an operator's actions on the runs of an entry.
#pragma once

#include "api/route.hpp"
#include "api/waiters.hpp"
#include "store/operator_store.hpp"

namespace latchkey::api {

struct DeadLetterContext {
  OperatorStore& store;
  Waiters& waiters;
};

RouteGroup dead_letter_routes(DeadLetterContext& context);

}  // namespace latchkey::api
