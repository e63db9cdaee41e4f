// UnderWay: the lanes that carry something just now, and whether a few requests had better wait for them: what is
// carried together costs less than what is carried apart. A lane that takes long, be it that it carries much or that
// something holds it up (a lock, a slow disk, a silence), is not waited for. For one thread.
#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "base/time.hpp"

namespace latchkey::pg {

class UnderWay {
 public:
  // So many lanes are enough for a few, if they have set out less than this ago.
  static constexpr std::ptrdiff_t kLanes = 2;
  static constexpr Duration kSoonBack = std::chrono::milliseconds{5};

  // `many`: requests that are worth a lane of their own at any time.
  explicit UnderWay(std::size_t many) : many_(many) {}

  using Lane = std::optional<std::multiset<Duration>::iterator>;  // none: it is not waited for
  Lane set_out(std::size_t requests, Duration now) {
    return requests < many_ ? Lane(since_.insert(now)) : std::nullopt;
  }
  void come_back(Lane lane) {
    if (lane) since_.erase(*lane);
  }

  bool are_soon_back(Duration now) const {
    return std::ranges::count_if(since_, [&](Duration since) { return now - since < kSoonBack; }) >= kLanes;
  }

 private:
  const std::size_t many_;
  std::multiset<Duration> since_;  // when each set out
};

}  // namespace latchkey::pg
