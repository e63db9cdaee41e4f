// SocketWaiters: the sockets of one io_context whose coroutines wait for a server. At shutdown it ends waits for
// servers that are silent. A server that answers is waited for as before.
//
// It counts ticks of 100 ms instead of time since the shutdown began, so that each socket has its own silence.
// Not thread-safe; outlives the connections.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <map>

#include "base/task.hpp"
#include "base/time.hpp"

namespace latchkey::pg {

class SocketWaiters {
 public:
  using Socket = boost::asio::posix::stream_descriptor;
  static constexpr Duration kTick = std::chrono::milliseconds{100};
  static constexpr unsigned kSilentTicks = 10;  // a second without a byte from the server
  // endless: only the limit of each wait counts.
  // some:    a socket that was silent for kSilentTicks stops waiting; its connection is lost.
  // last:    the same; and when all sockets were silent for twice as long, every wait ends.
  enum class Patience : std::uint8_t { endless, some, last };

  // False when the wait was ended before the socket was ready.
  Task<bool> wait(Socket& socket, Socket::wait_type direction);
  // Called once per kTick from the start of the shutdown. Patience only shrinks.
  void on_tick(Patience patience);
  bool are_last() const { return are_last_; }
  bool has_ended() const { return has_ended_; }

 private:
  std::map<Socket*, unsigned> waiting_;  // ticks that each socket has been silent
  unsigned silent_ticks_ = 0;            // ticks with a waiting socket since any server answered
  bool are_last_ = false;
  bool has_ended_ = false;
};

}  // namespace latchkey::pg
