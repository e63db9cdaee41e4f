// A coarse deadline wheel: setting a deadline is a store, so no operation needs a timer of its own.
//
// An entry expires at the first advance() at or after its deadline. Moving a deadline later does not move the entry: it
// is looked at again when its old slot comes round. One thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "base/time.hpp"

namespace latchkey::http {

class Deadlines {
 public:
  // Embedded in its owner; must be cancelled or expired before it is destroyed.
  struct Entry {
    Entry* previous = nullptr;
    Entry* next = nullptr;
    std::uint64_t due_tick = 0;   // when it expires; kNever when it must not
    std::uint64_t slot_tick = 0;  // when it is looked at; never after due_tick
  };

  explicit Deadlines(Duration tick, Duration now);

  // `now` is asked for, not taken from the last advance(): a loop that was held up must not count that against whom it
  // only then heard.
  void set(Entry& entry, Duration now, Duration after);
  // As set(never): a store.
  void suspend(Entry& entry) { entry.due_tick = kNever; }
  // Takes the entry out of the wheel.
  void cancel(Entry& entry);
  // Calls `expire` for each entry whose deadline has passed, out of the wheel already. It may set and cancel any entry.
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
