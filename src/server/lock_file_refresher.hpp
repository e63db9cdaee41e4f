// LockFileRefresher: keeps a server's lock file where commands look for it, on a thread of its own. Twice a second:
// until the file is back, commands wait for it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/sqlite/store_lock.hpp"

namespace latchkey {

class LockFileRefresher {
 public:
  // The lock is nobody else's while this lives.
  explicit LockFileRefresher(StoreLock& lock);
  ~LockFileRefresher();

 private:
  void work();

  StoreLock& lock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace latchkey
