// StoreClock: wall time that never runs backwards. If the wall clock steps back, the store clock continues from its
// mark, so that leases still end. The back end stores the mark across restarts. Safe from any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.hpp"

namespace latchkey {

class StoreClock {
 public:
  // The speed while the clock is ahead of the wall clock. Clocks of several servers with one mark must converge:
  // `slower` means one percent slower until the wall clock has caught up.
  enum class Ahead : std::uint8_t { full_speed, slower };

  explicit StoreClock(Clock& clock, Instant mark = {}, Ahead ahead = Ahead::full_speed);
  Instant now();
  // From now on the clock is not earlier than this time, which another server has used.
  void catch_up(Instant others);

 private:
  Instant read();

  Clock& clock_;
  const Ahead ahead_;
  std::mutex mutex_;
  Instant mark_;
  Duration marked_at_;
};

}  // namespace latchkey
