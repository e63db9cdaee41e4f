#include "server/startup_signal_guard.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/assert.hpp"

namespace latchkey {
namespace {

bool is_ready(int file, Duration most) {
  pollfd one{file, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&one, 1, static_cast<int>(most.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

StartupSignalGuard::StartupSignalGuard(const sigset_t& signals)
    : signals_(::signalfd(-1, &signals, SFD_CLOEXEC)), finished_(::eventfd(0, EFD_CLOEXEC)) {
  LK_ASSERT(signals_ >= 0 && finished_ >= 0);
  thread_ = std::thread([this] { watch(); });
}

std::optional<int> StartupSignalGuard::finish() {
  if (!thread_.joinable()) return signal_;
  (void)::eventfd_write(finished_, 1);
  thread_.join();
  ::close(signals_);
  ::close(finished_);
  return signal_;
}

void StartupSignalGuard::watch() {
  std::array<pollfd, 2> both{{{finished_, POLLIN, 0}, {signals_, POLLIN, 0}}};
  while (::poll(both.data(), both.size(), -1) < 0) {
  }
  if (both[0].revents != 0) return;
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof info) != sizeof info) return;
  signal_ = static_cast<int>(info.ssi_signo);
  if (is_ready(finished_, kMoment)) return;
  spdlog::info("stopped by signal {} before it served", *signal_);
  ::_exit(0);
}

}  // namespace latchkey
