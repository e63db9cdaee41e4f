// DatabaseClock: the database's wall time, as last read, carried on by the host's steady clock. Safe from any thread.
#pragma once

#include <algorithm>
#include <mutex>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace latchkey::pg {

class DatabaseClock final : public Clock {
 public:
  explicit DatabaseClock(Clock& host) : host_(host) {}
  Instant now() override {
    const std::lock_guard lock(mutex_);
    // In whole milliseconds one more may seem to have passed than has. It must not run ahead: what one host says is due
    // now must be due to all.
    return read_ + std::max(Duration{0}, host_.elapsed() - read_at_ - Duration{1});
  }
  Duration elapsed() override { return host_.elapsed(); }
  Task<void> wait(Duration span) override { return host_.wait(span); }
  void set(Instant read) {
    const std::lock_guard lock(mutex_);
    read_ = read;
    read_at_ = host_.elapsed();
  }

 private:
  Clock& host_;
  std::mutex mutex_;
  Instant read_;
  Duration read_at_{};
};

}  // namespace latchkey::pg
