// Clock: the only source of time and of waits. It is injected everywhere, so that the simulation controls time.
#pragma once

#include <atomic>

#include "base/task.hpp"
#include "base/time.hpp"

namespace latchkey {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time. May jump forward or backward; the clock of a store never runs backward.
  virtual Instant now() = 0;
  // Monotonic time since an arbitrary start. For waits and measurements; never stored.
  virtual Duration elapsed() = 0;
  // Suspends the calling coroutine. Throws operation_aborted when the coroutine is cancelled.
  virtual Task<void> wait(Duration span) = 0;
};

// The machine's clocks. Safe from any thread.
class SystemClock final : public Clock {
 public:
  Instant now() override;
  Duration elapsed() override;
  Task<void> wait(Duration span) override;
};

// A clock that changes only by calls. now() and elapsed() are safe from any thread; wait() is not supported.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Instant start) : now_ms_(to_ms(start)) {}
  Instant now() override { return from_ms(now_ms_.load()); }
  Duration elapsed() override { return Duration{elapsed_ms_.load()}; }
  Task<void> wait(Duration span) override;
  void advance(Duration span) { now_ms_ += span.count(), elapsed_ms_ += span.count(); }
  // Changes only the wall time, as an administrator or NTP would.
  void jump(Duration span) { now_ms_ += span.count(); }

 private:
  std::atomic<std::int64_t> now_ms_;
  std::atomic<std::int64_t> elapsed_ms_{0};
};

}  // namespace latchkey
