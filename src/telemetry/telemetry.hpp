// Telemetry: what the server counts, as Prometheus text. Every counter is looked up once, at the start; counting is one
// atomic addition. Safe from any thread. Names no tenant, key or function: the labels are few and fixed.
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
  // A settle that was accepted, by its ending's place in Ending; a repeat of one is not to be counted.
  void count_settled(std::size_t kind);
  void count_refused_settle(Code code);
  // A batch of the store that failed this request.
  void count_store_error() { store_errors_.Increment(); }
  void count_response(int status);

  // What others count.
  struct Readings {
    std::uint64_t replays_from_memory = 0;
    std::size_t waiting = 0;
    std::optional<StoreStats> stats;  // none: it could not be read, and what was said last is said again
    Instant now;                      // by the store's clock
  };
  // The text exposition format, version 0.0.4.
  std::string expose(const Readings& readings);

 private:
  using Counter = prometheus::Counter;
  void tell(const StoreStats& stats, Instant now);

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
