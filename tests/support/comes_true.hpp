// comes_true: for what gives no sign when it has happened. Looks every few milliseconds.
#pragma once

#include <chrono>
#include <thread>

#include "base/clock.hpp"

namespace latchkey {

// False when it is still not so after a minute, for which no machine stalls: then it does not come.
bool comes_true(auto is_so) {
  SystemClock clock;
  for (const Duration patience = clock.elapsed() + std::chrono::minutes{1}; !is_so();) {
    if (clock.elapsed() > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace latchkey
