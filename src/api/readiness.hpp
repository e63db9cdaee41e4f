// Readiness: the state of the store for GET /readyz. While the latest write of the store has failed, find_failure()
// returns that failure at once, and a probe in the background writes to the store until a write succeeds: one probe at
// a time, started by the calls. So a reply never waits for a database that does not respond.
//
// Any thread. Must outlive the store's callbacks.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "store/store_lifecycle.hpp"

namespace latchkey::api {

class Readiness {
 public:
  Readiness(StoreLifecycle& store, Clock& clock) : store_(store), clock_(clock) {}

  // The failure of the latest write; none if it succeeded. Starts a probe if there is a failure and no probe. Never
  // waits.
  std::optional<Error> find_failure();
  // A warning for the operator although the store is ready: its clock is ahead of this host's by kClockAheadMin or
  // more. Leases and windows then end later than this host's clock shows.
  std::optional<std::string> find_clock_warning();

  static constexpr Duration kClockAheadMin = std::chrono::minutes{1};

 private:
  StoreLifecycle& store_;
  Clock& clock_;
  std::atomic<bool> is_probing_ = false;
};

}  // namespace latchkey::api
