#include "base/alarm.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace latchkey {

Alarm::Alarm(const boost::asio::any_io_executor& executor)
    : timer_(executor, boost::asio::steady_timer::time_point::max()) {}

Task<void> Alarm::wait() {
  boost::system::error_code rung;
  co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, rung));
}

Limit::Limit(const boost::asio::any_io_executor& executor) : timer_(executor) {}

void Limit::set(Duration span, std::function<void()> over) {
  stop();
  is_on_ = std::make_shared<bool>(true);
  timer_.expires_after(span);
  // The handler may already be queued when stop() is called. Its own flag is then false.
  timer_.async_wait([is_on = is_on_, over = std::move(over)](boost::system::error_code) {
    if (std::exchange(*is_on, false)) over();
  });
}

void Limit::stop() {
  if (is_on_) *is_on_ = false;
  timer_.cancel();
}

}  // namespace latchkey
