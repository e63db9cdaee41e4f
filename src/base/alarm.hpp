// Wake-ups and time limits for coroutines of one io_context. Not thread-safe: other threads post to the io_context.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "base/task.hpp"
#include "base/time.hpp"

namespace latchkey {

// ring() resumes all coroutines that are in wait(). It has no effect on later waits: a coroutine checks its condition
// before it waits.
class Alarm {
 public:
  explicit Alarm(const boost::asio::any_io_executor& executor);
  Task<void> wait();
  void ring() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
};

// Calls `over` once when the time has passed, unless stop(), set() or the destructor is called before.
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
