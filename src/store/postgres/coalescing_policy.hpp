// CoalescingPolicy: the lanes that execute_once something just now, and whether a few requests had better wait for
// them: where many come at once, what is carried together costs less than what is carried apart. Where few do, nothing
// is to be shared, and whoever comes sets out at once. A lane that takes long, be it that it carries much or that
// something holds it up (a lock, a slow disk, a silence), is not waited for. For one thread.
#pragma once

#include <map>
#include <optional>

#include "base/time.hpp"

namespace latchkey::pg {

class CoalescingPolicy {
 public:
  // So many lanes are enough for a few, if they have set out less than this ago.
  static constexpr std::size_t kLanes = 2;
  static constexpr Duration kSoonBack = std::chrono::milliseconds{5};
  // Requests on these lanes: fewer are no crowd.
  static constexpr std::size_t kQuarantineThreshold = 16;

  // `many`: requests that are worth a lane of their own at any time.
  explicit CoalescingPolicy(std::size_t many) : many_(many) {}

  using Lane = std::optional<std::multimap<Duration, std::size_t>::iterator>;  // none: it is not waited for
  Lane batch_started(std::size_t requests, Duration now) {
    return requests < many_ ? Lane(carried_.emplace(now, requests)) : std::nullopt;
  }
  void batch_finished(Lane lane) {
    if (lane) carried_.erase(*lane);
  }

  bool should_wait_for_inflight(Duration now) const {
    std::size_t lanes = 0, requests = 0;
    for (auto lane = carried_.upper_bound(now - kSoonBack); lane != carried_.end(); ++lane) {
      lanes += 1;
      requests += lane->second;
    }
    return lanes >= kLanes && requests >= kQuarantineThreshold;
  }

 private:
  const std::size_t many_;
  std::multimap<Duration, std::size_t> carried_;  // requests of each, by when it set out
};

}  // namespace latchkey::pg
