#include "store/store_clock.hpp"

#include <algorithm>

#include "base/seeded_bug.hpp"

namespace latchkey {

// Marked at once: a step back before anyone has asked for the time is one, too.
StoreClock::StoreClock(Clock& clock, Instant mark)
    : clock_(clock), mark_(std::max(clock.now(), mark)), marked_at_(clock.elapsed()) {}

Instant StoreClock::now() {
  const std::lock_guard lock(mutex_);
  const Duration elapsed = clock_.elapsed();
  mark_ = std::max(clock_.now(), mark_ + (elapsed - marked_at_));
  marked_at_ = elapsed;
  if (LK_SEEDED(store_clock_runs_back)) mark_ = clock_.now();
  return mark_;
}

}  // namespace latchkey
