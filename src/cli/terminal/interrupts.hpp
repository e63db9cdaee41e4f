// Interrupts: lets a coroutine await SIGINT, SIGTERM, SIGHUP and SIGQUIT. They are blocked in the whole process until
// the destructor runs, so it must be created before any thread. A signal that was ignored at the start (nohup, a
// background job) stays ignored.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <thread>

#include "base/task.hpp"
#include "effects/command.hpp"

namespace latchkey {

class Interrupts {
 public:
  using Handler = std::function<void(int signal, Command::Sender sender)>;

  explicit Interrupts(asio::io_context& io);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The state of the signals before, which a command inherits.
  const SignalState& before() const { return before_; }
  // Calls the handler for each signal, until cancelled.
  Task<void> listen(Handler handler);
  void cancel() { signals_.cancel(); }
  // Restores the state of the signals before.
  void restore();

 private:
  SignalState before_;
  asio::posix::stream_descriptor signals_;
};

// InterruptWatch: the same signals for work that blocks. A thread of its own calls the handler for each signal. After
// the first signal it also calls `insist` ten times a second.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::function<void(int signal)> handler, std::function<void()> insist = [] {});
  // No call of the handler is under way, or begins, once this returns.
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // Ends the process as the signal would have.
  [[noreturn]] static void die_of(int signal);

 private:
  void listen(const std::function<void(int signal)>& handler, const std::function<void()>& insist) const;

  SignalState before_;
  int signals_;
  int ended_;  // an eventfd
  std::thread thread_;
};

// InterruptibleClock: a clock whose waits throw operation_aborted when `must_leave` returns true after a wake().
class InterruptibleClock final : public Clock {
 public:
  InterruptibleClock(Clock& clock, asio::io_context& io, std::function<bool()> must_leave)
      : clock_(clock), must_leave_(std::move(must_leave)), woken_(io, 1) {}

  Instant now() override { return clock_.now(); }
  Duration elapsed() override { return clock_.elapsed(); }
  Task<void> wait(Duration span) override;
  void wake() { woken_.try_send(boost::system::error_code{}); }

 private:
  Clock& clock_;
  std::function<bool()> must_leave_;
  asio::experimental::channel<void(boost::system::error_code)> woken_;
};

}  // namespace latchkey
