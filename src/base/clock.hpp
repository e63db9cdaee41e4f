// Clock: the only way to learn the time or to wait. Injected everywhere, so that the simulation owns time.
#pragma once

#include <atomic>

#include "base/task.hpp"
#include "base/time.hpp"

namespace latchkey {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time. May jump either way; stores keep a mark so that theirs never runs backwards.
  virtual Instant now() = 0;
  // Time since some start; never jumps. For waiting and measuring, never stored.
  virtual Duration elapsed() = 0;
  // Suspends the calling coroutine. Ends early, with operation_aborted thrown, when it is cancelled.
  virtual Task<void> wait(Duration span) = 0;
};

// The machine's clocks. Safe from any thread.
class SystemClock final : public Clock {
 public:
  Instant now() override;
  Duration elapsed() override;
  Task<void> wait(Duration span) override;
};

// A clock that stands still until told. now() and elapsed() are safe from any thread; wait() is not supported.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Instant start) : now_ms_(to_ms(start)) {}
  Instant now() override { return from_ms(now_ms_.load()); }
  Duration elapsed() override { return Duration{elapsed_ms_.load()}; }
  Task<void> wait(Duration span) override;
  void advance(Duration span) { now_ms_ += span.count(), elapsed_ms_ += span.count(); }
  // Wall time alone, as an administrator or NTP would.
  void jump(Duration span) { now_ms_ += span.count(); }

 private:
  std::atomic<std::int64_t> now_ms_;
  std::atomic<std::int64_t> elapsed_ms_{0};
};

}  // namespace latchkey
