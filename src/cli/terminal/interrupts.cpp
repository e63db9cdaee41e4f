#include "cli/terminal/interrupts.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>

#include "base/assert.hpp"

namespace latchkey {
namespace {

int block_and_open() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&wanted, signal);
  }
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  const int file = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  LK_ASSERT(file >= 0);
  return file;
}

// A terminal sends signals to the whole foreground group, including the command. A SIGHUP of a closed terminal goes
// only to the leader of the session, which is this process if the terminal was opened for it (ssh -t, xterm -e).
Command::Sender sender_of(const signalfd_siginfo& info) {
  const bool to_leader = info.ssi_signo == SIGHUP && ::getsid(0) == ::getpid();
  return info.ssi_code == SI_KERNEL && !to_leader ? Command::Sender::terminal : Command::Sender::process;
}

}  // namespace

Interrupts::Interrupts(asio::io_context& io) : before_(read_signal_state()), signals_(io, block_and_open()) {
  // A reader that closes the pipe must not kill this process. Nor must the maximum file size (ulimit -f): the store is
  // full then. The command inherits the previous state of both signals.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

Interrupts::~Interrupts() { restore(); }

void Interrupts::restore() {
  if (!before_.pipe_ignored) ::signal(SIGPIPE, SIG_DFL);
  if (!before_.file_size_ignored) ::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before_.mask, nullptr);
}

Task<void> Interrupts::listen(Handler handler) {
  for (;;) {
    signalfd_siginfo info{};
    const auto [error, size] =
        co_await signals_.async_read_some(asio::buffer(&info, sizeof info), asio::as_tuple(asio::use_awaitable));
    if (error || size != sizeof info) co_return;
    handler(static_cast<int>(info.ssi_signo), sender_of(info));
  }
}

InterruptWatch::InterruptWatch(std::function<void(int signal)> handler, std::function<void()> insist)
    : before_(read_signal_state()),
      signals_(block_and_open()),
      ended_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this, handler = std::move(handler), insist = std::move(insist)] { listen(handler, insist); }) {
  LK_ASSERT(ended_ >= 0);
}

InterruptWatch::~InterruptWatch() {
  ::eventfd_write(ended_, 1);
  thread_.join();
  ::close(ended_);
  ::close(signals_);
  ::pthread_sigmask(SIG_SETMASK, &before_.mask, nullptr);
}

void InterruptWatch::listen(const std::function<void(int signal)>& handler, const std::function<void()>& insist) const {
  int patience_ms = -1;
  for (;;) {
    pollfd files[] = {{ended_, POLLIN, 0}, {signals_, POLLIN, 0}};
    const int found = ::poll(files, 2, patience_ms);
    if (found == 0) insist();
    if (found <= 0) continue;
    if (files[0].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    patience_ms = 100;
    handler(static_cast<int>(info.ssi_signo));
  }
}

void InterruptWatch::die_of(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  std::_Exit(128 + signal);
}

Task<void> InterruptibleClock::wait(Duration span) {
  using namespace asio::experimental::awaitable_operators;
  const Duration until = clock_.elapsed() + span;
  do {
    if (must_leave_()) throw boost::system::system_error(asio::error::operation_aborted);
    co_await (clock_.wait(until - clock_.elapsed()) || woken_.async_receive(asio::use_awaitable));
  } while (clock_.elapsed() < until);
}

}  // namespace latchkey
