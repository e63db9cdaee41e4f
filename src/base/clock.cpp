#include "base/clock.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/assert.hpp"

namespace latchkey {

Instant SystemClock::now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }

Duration SystemClock::elapsed() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

Task<void> SystemClock::wait(Duration span) {
  asio::steady_timer timer(co_await asio::this_coro::executor, span);
  co_await timer.async_wait(asio::use_awaitable);
}

Task<void> ManualClock::wait(Duration) {
  LK_ASSERT(!"a manual clock cannot be waited on");
  co_return;
}

}  // namespace latchkey
