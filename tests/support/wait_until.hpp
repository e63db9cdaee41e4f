// wait_until: polls a condition that sends no signal when it becomes true. Call it from any thread; it blocks the
// caller.
#pragma once

#include <chrono>
#include <thread>

#include "base/clock.hpp"

namespace latchkey {

// Checks the condition every 2 ms. Returns false after a minute; no machine stalls for so long.
bool wait_until(auto condition) {
  SystemClock clock;
  for (const Duration limit = clock.elapsed() + std::chrono::minutes{1}; !condition();) {
    if (clock.elapsed() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace latchkey
