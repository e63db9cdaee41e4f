#include "store/store_clock.hpp"

#include <algorithm>

#include "base/seeded_bug.hpp"

namespace latchkey {

// The mark is set at once, so that a step back before the first call of now() is noticed, too.
StoreClock::StoreClock(Clock& clock, Instant mark, Ahead ahead)
    : clock_(clock), ahead_(ahead), mark_(std::max(clock.now(), mark)), marked_at_(clock.elapsed()) {}

Instant StoreClock::now() {
  const std::lock_guard lock(mutex_);
  return read();
}

void StoreClock::catch_up(Instant others) {
  const std::lock_guard lock(mutex_);
  if (others <= read()) return;
  mark_ = others;
  marked_at_ = clock_.elapsed();
}

Instant StoreClock::read() {
  const Instant wall = clock_.now();
  const Duration elapsed = clock_.elapsed(), passed = elapsed - marked_at_;
  const bool slows = ahead_ == Ahead::slower;
  const Instant carried = mark_ + (slows ? passed - passed / 100 : passed);
  if (LK_SEEDED(store_clock_runs_back)) return wall;
  // The mark does not move here: counting many short spans would round each of them.
  if (slows && wall < carried) return carried;
  mark_ = std::max(wall, carried);
  marked_at_ = elapsed;
  return mark_;
}

}  // namespace latchkey
