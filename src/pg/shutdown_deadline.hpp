// ShutdownDeadline: the time by which all blocking waits end, once it is set. A wait that begins near that time, or
// later, still gets kGrace, because a server that answers can serve it. Any thread.
//
// A thread that polls a socket also polls descriptor(), which becomes readable when the deadline is set.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/time.hpp"

namespace latchkey::pg {

class ShutdownDeadline {
 public:
  static constexpr Duration kGrace = std::chrono::seconds{1};
  ShutdownDeadline();
  ~ShutdownDeadline();
  ShutdownDeadline(const ShutdownDeadline&) = delete;
  ShutdownDeadline& operator=(const ShutdownDeadline&) = delete;

  // In the time of a clock's elapsed(). Only the first call counts.
  void set(Duration until);
  bool is_set() const { return until_.load() != Duration::max(); }
  // The end of a wait that began at `since` and may last until `until`.
  Duration cap(Duration until, Duration since) const {
    return std::min(until, std::max(until_.load(), since + kGrace));
  }
  int descriptor() const { return descriptor_; }

 private:
  std::atomic<Duration> until_{Duration::max()};
  int descriptor_;
};

}  // namespace latchkey::pg
