// StoreClock: wall time that never runs backwards. After a step back it goes on from its mark at the steady clock's
// pace, so that leases still end. The back end keeps the mark over restarts. Safe from any thread.
#pragma once

#include <mutex>

#include "base/clock.hpp"

namespace latchkey {

class StoreClock {
 public:
  explicit StoreClock(Clock& clock, Instant mark = {});
  Instant now();

 private:
  Clock& clock_;
  std::mutex mutex_;
  Instant mark_;
  Duration marked_at_;
};

}  // namespace latchkey
