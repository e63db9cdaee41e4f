// Services: the parts of a server that all routes share. Each feature's own parts are in its route context.
#pragma once

#include "api/auth.hpp"
#include "api/blocking_pool.hpp"
#include "store/store.hpp"
#include "telemetry/telemetry.hpp"

namespace latchkey::api {

// Outlives every call: callbacks of the store refer to it.
struct Services {
  explicit Services(Store& the_store)
      : store(the_store), tokens(store), blocking_pool(store.reads_block() ? kBlockingReadThreads : 1) {}

  // A remote store has one read connection for each of these threads.
  static constexpr unsigned kBlockingReadThreads = 8;

  Store& store;
  Telemetry telemetry;
  TokenTable tokens;
  BlockingPool blocking_pool;
};

}  // namespace latchkey::api
