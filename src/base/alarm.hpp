// Waiting that somebody else may end, for coroutines of one io_context. Not safe from other threads: post to ring.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "base/task.hpp"
#include "base/time.hpp"

namespace latchkey {

// Whoever waits goes on when it rings. A ring that nobody waits for is lost: look before waiting.
class Alarm {
 public:
  explicit Alarm(const boost::asio::any_io_executor& executor);
  Task<void> wait();
  void ring() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
};

// Calls once when its time is over, unless it is stopped or destroyed before. Set again, it counts anew.
class Limit {
 public:
  explicit Limit(const boost::asio::any_io_executor& executor);
  ~Limit() { stop(); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  void set(Duration span, std::function<void()> over);
  void stop();

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> is_on_;
};

}  // namespace latchkey
