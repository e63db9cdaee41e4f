// StoreStats: what an operator should see at a glance.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace latchkey {

struct StoreStats {
  // Open runs. One whose lease is over is running until it is swept.
  std::uint64_t queued = 0;
  std::uint64_t running = 0;
  std::uint64_t in_doubt = 0;
  std::optional<Instant> doubt_since;  // of the run that has been in doubt for longest
  std::uint64_t unacknowledged_dead_letters = 0;    // dead letters that nobody has acknowledged

  bool operator==(const StoreStats&) const = default;
};

}  // namespace latchkey
