#include "server/composed_api.hpp"

namespace latchkey {

ComposedApi::ComposedApi(Engine& engine, Clock& clock, Random& random)
    : services(engine.store()),
      waiters(engine.store(), clock),
      runs{engine, waiters},
      dead_letters{engine.store(), waiters},
      tokens{engine.store(), services.tokens, random},
      server{engine, waiters, {engine.store(), clock}},
      router(services, {api::run_routes(runs), api::dead_letter_routes(dead_letters), api::token_routes(tokens),
                        api::server_routes(server)}) {}

}  // namespace latchkey
