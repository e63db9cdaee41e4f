// Time in the simulation: it does not advance while code runs, and jumps to the next timer when none does.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "base/clock.hpp"

namespace latchkey::sim {

// One life of a process. When it crashes its timers and the replies to it are dropped; while it is paused they wait.
struct Life {
  bool alive = true;
  Duration paused_until{};
  Duration last_pause_end{-1};
};

class VirtualClock final : public Clock {
 public:
  using Fire = std::move_only_function<void()>;
  using TimerId = std::pair<Duration, std::uint64_t>;

  explicit VirtualClock(Instant start) : start_(start) {}

  Instant now() override { return start_ + elapsed_ + offset_; }
  Duration elapsed() override { return elapsed_; }
  Task<void> wait(Duration span) override { return wait_in(nullptr, span); }
  Task<void> wait_in(std::shared_ptr<Life> life, Duration span);

  TimerId at(Duration when, std::shared_ptr<Life> life, Fire fire);
  TimerId after(Duration span, std::shared_ptr<Life> life, Fire fire) {
    return at(elapsed_ + span, std::move(life), std::move(fire));
  }
  bool cancel(TimerId id) { return timers_.erase(id) > 0; }
  // Moves the wall time only, as an administrator or NTP would.
  void jump(Duration span) { offset_ += span; }
  // Fires the next timer that is due by `until`; false when there is none, and it is `until` then.
  bool step(Duration until);
  // Drops the timers of a dead process.
  void forget(const std::shared_ptr<Life>& life);
  void clear();

 private:
  struct Timer {
    std::shared_ptr<Life> life;
    Fire fire;
  };
  Instant start_;
  Duration elapsed_{0};
  Duration offset_{0};
  std::uint64_t next_ = 0;
  std::map<TimerId, Timer> timers_;
};

// A process's own view of time: it can be paused.
class LifeClock final : public Clock {
 public:
  LifeClock(VirtualClock& clock, std::shared_ptr<Life> life) : clock_(clock), life_(std::move(life)) {}
  Instant now() override { return clock_.now(); }
  Duration elapsed() override { return clock_.elapsed(); }
  Task<void> wait(Duration span) override { return clock_.wait_in(life_, span); }

 private:
  VirtualClock& clock_;
  std::shared_ptr<Life> life_;
};

}  // namespace latchkey::sim
