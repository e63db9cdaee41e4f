// Deadlines: a timer wheel with coarse ticks. Setting a deadline is one store, so no operation needs its own timer.
//
// An entry expires at the first advance() at or after its deadline. An entry whose deadline is moved to a later time
// stays in its slot; advance() moves it when it visits the slot. One thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "base/time.hpp"

namespace latchkey::http {

class Deadlines {
 public:
  // A member or base of the object that has the deadline. Must be cancelled or expired before it is destroyed.
  struct Entry {
    Entry* previous = nullptr;
    Entry* next = nullptr;
    std::uint64_t due_tick = 0;   // tick of the deadline; kNever while suspended
    std::uint64_t slot_tick = 0;  // tick at which advance() visits it; never after due_tick
  };

  explicit Deadlines(Duration tick, Duration now);

  // The caller passes the current time. The time of the last advance() may be old when the thread was delayed, and a
  // client that connected after the delay would expire early.
  void set(Entry& entry, Duration now, Duration after);
  // The entry does not expire until it is set again.
  void suspend(Entry& entry) { entry.due_tick = kNever; }
  // Removes the entry from the wheel.
  void cancel(Entry& entry);
  // Removes each entry whose deadline has passed and calls `expire` with it. `expire` may set and cancel any entry.
  void advance(Duration now, const std::function<void(Entry&)>& expire);

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static constexpr std::size_t kSlots = 512;

  void link(Entry& entry);
  void visit_slot(const std::function<void(Entry&)>& expire);

  std::int64_t tick_ms_;
  std::uint64_t now_tick_;
  std::array<Entry, kSlots> slots_;  // heads of circular lists
};

}  // namespace latchkey::http
