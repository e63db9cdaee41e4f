// StartupSignalGuard: ends the process when a signal comes while a server starts. To start may take as long as somebody
// else likes (a database that says nothing, another server that sets up the schema), and cannot be broken off; but
// nothing is lost when it is: what it does is kept as a whole or not at all.
//
// A start that is over a moment later goes its way: then the server is stopped as ever, and leaves nothing behind.
#pragma once

#include <csignal>
#include <optional>
#include <thread>

#include "base/time.hpp"

namespace latchkey {

class StartupSignalGuard {
 public:
  static constexpr Duration kMoment = std::chrono::seconds{1};

  // These must be blocked, in every thread.
  explicit StartupSignalGuard(const sigset_t& signals);
  ~StartupSignalGuard() { finish(); }
  StartupSignalGuard(const StartupSignalGuard&) = delete;
  StartupSignalGuard& operator=(const StartupSignalGuard&) = delete;

  // It has started, or will not. The signal that came meanwhile; the next ones are for the caller.
  std::optional<int> finish();

 private:
  void watch();

  const int signals_;
  const int finished_;
  std::optional<int> signal_;
  std::thread thread_;
};

}  // namespace latchkey
