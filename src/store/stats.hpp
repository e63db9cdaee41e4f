// StoreStats: counts of open runs and unacknowledged dead letters, for metrics.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace latchkey {

struct StoreStats {
  // Open runs. A run with an expired lease counts as running until the sweep ends it.
  std::uint64_t queued = 0;
  std::uint64_t running = 0;
  std::uint64_t in_doubt = 0;
  std::optional<Instant> doubt_since;  // of the run that has been in doubt longest
  std::uint64_t unacknowledged_dead_letters = 0;

  bool operator==(const StoreStats&) const = default;
};

}  // namespace latchkey
