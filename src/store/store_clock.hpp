// StoreClock: wall time that never runs backwards. After a step back it goes on from its mark, so that leases still
// end. The back end keeps the mark over restarts. Safe from any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.hpp"

namespace latchkey {

class StoreClock {
 public:
  // While it is ahead of the wall clock. One that others go by too must come together with theirs again: it slows down
  // by a hundredth, until the wall clock has caught up. Leases keep their length.
  enum class Ahead : std::uint8_t { keeps_pace, slows_down };

  explicit StoreClock(Clock& clock, Instant mark = {}, Ahead ahead = Ahead::full_speed);
  Instant now();
  // Others have been there: no earlier than that from now on.
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
