// CoalescingPolicy: decides whether a small backlog should wait for batches in flight instead of starting a batch of
// its own. Under load, one batch of many requests costs less than many small ones. With few requests in flight there is
// nothing to share, so a batch starts at once. A batch in flight that is large or slow (a lock, a slow disk, a silent
// server) is not waited for. For one thread.
#pragma once

#include <map>
#include <optional>

#include "base/time.hpp"

namespace latchkey::pg {

class CoalescingPolicy {
 public:
  // The backlog waits only if at least this many batches are in flight, all started less than kRecent ago.
  static constexpr std::size_t kBatchesMin = 2;
  static constexpr Duration kRecent = std::chrono::milliseconds{5};
  // Those batches must contain at least this many requests together.
  static constexpr std::size_t kRequestsMin = 16;

  // `coalesce_below`: a batch of so many requests or more is large.
  explicit CoalescingPolicy(std::size_t coalesce_below) : coalesce_below_(coalesce_below) {}

  using InFlight = std::optional<std::multimap<Duration, std::size_t>::iterator>;  // none: a large batch
  InFlight batch_started(std::size_t requests, Duration now) {
    return requests < coalesce_below_ ? InFlight(in_flight_.emplace(now, requests)) : std::nullopt;
  }
  void batch_finished(InFlight batch) {
    if (batch) in_flight_.erase(*batch);
  }

  bool should_wait_for_inflight(Duration now) const {
    std::size_t batches = 0, requests = 0;
    for (auto batch = in_flight_.upper_bound(now - kRecent); batch != in_flight_.end(); ++batch) {
      batches += 1;
      requests += batch->second;
    }
    return batches >= kBatchesMin && requests >= kRequestsMin;
  }

 private:
  const std::size_t coalesce_below_;
  std::multimap<Duration, std::size_t> in_flight_;  // start time and requests of each small batch
};

}  // namespace latchkey::pg
