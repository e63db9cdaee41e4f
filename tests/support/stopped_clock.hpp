// StoppedClock: a host's clock for a store. The test decides when time continues.
#pragma once

#include <atomic>

#include "base/clock.hpp"

namespace latchkey {

// The machine's clock, except that elapsed() is constant until resume(). wait() takes its time as usual.
class StoppedClock final : public Clock {
 public:
  Instant now() override { return system_.now(); }
  Duration elapsed() override { return is_stopped_ ? stopped_at_ : system_.elapsed(); }
  Task<void> wait(Duration span) override { return system_.wait(span); }
  void resume() { is_stopped_ = false; }

 private:
  SystemClock system_;
  const Duration stopped_at_ = system_.elapsed();
  std::atomic<bool> is_stopped_{true};
};

}  // namespace latchkey
