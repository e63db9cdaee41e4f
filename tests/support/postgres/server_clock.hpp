// ServerClock: the wall clock of the PostgreSQL servers that are started while there is one, to be set by the test
// (clock_shim.c). The test's own clocks are the machine's. Make it while the process has one thread.
#pragma once

#include "base/time.hpp"
#include "support/folder.hpp"

namespace latchkey {

class ServerClock {
 public:
  ServerClock();
  ~ServerClock();
  ServerClock(const ServerClock&) = delete;
  ServerClock& operator=(const ServerClock&) = delete;

  // So far from the machine's, from now on.
  void set(Duration offset);

 private:
  const Folder folder_;
};

}  // namespace latchkey
