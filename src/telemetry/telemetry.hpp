// Telemetry: the server's metrics, as Prometheus text. All counters are created at the start, and counting is one
// atomic addition. No label names a tenant, key or function, so the number of series is fixed. Safe from any thread.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "model/requests.hpp"
#include "store/stats.hpp"

namespace latchkey {

class Telemetry {
 public:
  Telemetry();

  void count(const ClaimReply& reply);
  void count_heartbeat() { heartbeats_.Increment(); }
  // Counts an accepted settle by the index of its ending in Ending. Repeats must not be counted.
  void count_settled(std::size_t kind);
  void count_refused_settle(Code code);
  // Counts a request that failed because the store failed.
  void count_store_error() { store_errors_.Increment(); }
  void count_response(int status);

  // Values that other parts of the server count.
  struct Readings {
    std::uint64_t replays_from_memory = 0;
    std::size_t waiting = 0;
    std::optional<StoreStats> stats;  // none if the store failed: the gauges do not change
    Instant now;                      // the time of the store's clock
  };
  // The text exposition format, version 0.0.4.
  std::string expose(const Readings& readings);

 private:
  using Counter = prometheus::Counter;
  void set_gauges(const StoreStats& stats, Instant now);

  prometheus::Registry registry_;
  std::array<Counter*, std::variant_size_v<ClaimReply>> claims_{};
  Counter* queued_claims_;
  Counter* refused_claims_;
  std::array<Counter*, std::variant_size_v<Ending>> settles_{};
  Counter& stale_settles_;
  Counter& heartbeats_;
  Counter& store_errors_;
  std::array<Counter*, 6> responses_{};  // by the status's first digit
  prometheus::Gauge& replays_from_memory_;
  prometheus::Gauge& waiting_;
  std::array<prometheus::Gauge*, 3> open_runs_{};  // queued, running, in doubt
  prometheus::Gauge& oldest_doubt_;
  prometheus::Gauge& unacknowledged_dead_letters_;
};

}  // namespace latchkey
