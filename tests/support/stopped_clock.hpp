// StoppedClock: a host's clock for a store whose test says when time goes on.
#pragma once

#include <atomic>

#include "base/clock.hpp"

namespace latchkey {

// The machine's, but that no time seems to pass between two looks until it is let go. Who waits does wait.
class StoppedClock final : public Clock {
 public:
  Instant now() override { return system_.now(); }
  Duration elapsed() override { return is_stopped_ ? stopped_at_ : system_.elapsed(); }
  Task<void> wait(Duration span) override { return system_.wait(span); }
  void let_go() { is_stopped_ = false; }

 private:
  SystemClock system_;
  const Duration stopped_at_ = system_.elapsed();
  std::atomic<bool> is_stopped_{true};
};

}  // namespace latchkey
