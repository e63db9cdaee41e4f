#include "pg/socket_waiters.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace latchkey::pg {

namespace asio = boost::asio;

Task<bool> SocketWaiters::wait(Socket& socket, Socket::wait_type direction) {
  if (has_ended_) co_return false;
  waiting_.emplace(&socket, 0);
  boost::system::error_code problem;
  co_await socket.async_wait(direction, asio::redirect_error(asio::use_awaitable, problem));
  waiting_.erase(&socket);
  // A writable socket only says that the kernel has buffer space, not that the server reads.
  if (!problem && direction == Socket::wait_read) silent_ticks_ = 0;
  co_return !problem;
}

void SocketWaiters::on_tick(Patience patience) {
  for (auto& [socket, ticks] : waiting_) ticks += 1;
  if (!waiting_.empty()) silent_ticks_ += 1;
  if (patience == Patience::endless) return;
  are_last_ = patience == Patience::last;
  has_ended_ |= are_last_ && silent_ticks_ >= 2 * kSilentTicks;
  for (auto& [socket, ticks] : waiting_)
    if (has_ended_ || ticks >= kSilentTicks) socket->cancel();
}

}  // namespace latchkey::pg
