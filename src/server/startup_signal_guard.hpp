// StartupSignalGuard: ends the process when a signal comes while a server starts. A start may block for a long time (a
// database that does not respond, another server that sets up the schema) and cannot be cancelled. Ending the process
// is safe, because every change of a start is one transaction.
//
// If the start finishes within kMoment after the signal, the process is not ended; the server then stops normally.
#pragma once

#include <csignal>
#include <optional>
#include <thread>

#include "base/time.hpp"

namespace latchkey {

class StartupSignalGuard {
 public:
  static constexpr Duration kMoment = std::chrono::seconds{1};

  // The signals must be blocked in every thread.
  explicit StartupSignalGuard(const sigset_t& signals);
  ~StartupSignalGuard() { finish(); }
  StartupSignalGuard(const StartupSignalGuard&) = delete;
  StartupSignalGuard& operator=(const StartupSignalGuard&) = delete;

  // Ends the guard after the start has succeeded or failed. Returns the signal that came meanwhile, if any. Later
  // signals are left to the caller.
  std::optional<int> finish();

 private:
  void watch();

  const int signals_;
  const int finished_;
  std::optional<int> signal_;
  std::thread thread_;
};

}  // namespace latchkey
