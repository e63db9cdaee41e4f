// DatabaseClock: the database's wall time, as last read, carried on by the host's steady clock. Safe from any thread.
#pragma once

#include <mutex>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace latchkey::pg {

class DatabaseClock final : public Clock {
 public:
  explicit DatabaseClock(Clock& host) : host_(host) {}
  Instant now() override {
    const std::lock_guard lock(mutex_);
    return read_ + (host_.elapsed() - read_at_);
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
