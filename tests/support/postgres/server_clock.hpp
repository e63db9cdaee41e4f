// ServerClock: lets a test set the wall clock of the PostgreSQL servers that start while this object lives
// (clock_shim.c). The test's own clocks are unchanged. Construct it while the process has one thread.
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

  // Sets the offset from the machine's clock.
  void set(Duration offset);

 private:
  const Folder folder_;
};

}  // namespace latchkey
