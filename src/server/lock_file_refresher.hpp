// LockFileRefresher: restores the lock file of a server when it was removed. It checks twice a second, on a thread of
// its own; commands wait until the file is back.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/sqlite/store_lock.hpp"

namespace latchkey {

class LockFileRefresher {
 public:
  // No other thread may use the lock during the lifetime of this object.
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
