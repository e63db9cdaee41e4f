#include "server/lock_file_refresher.hpp"

#include <spdlog/spdlog.h>

namespace latchkey {
namespace {

constexpr auto kPause = std::chrono::milliseconds{500};

}  // namespace

LockFileRefresher::LockFileRefresher(StoreLock& lock) : lock_(lock), thread_([this] { work(); }) {}

LockFileRefresher::~LockFileRefresher() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LockFileRefresher::work() {
  bool was_failing = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPause, [this] { return closing_; })) {
    const auto restored = lock_.restore_lock_file();
    if (!restored && !was_failing) spdlog::error("cannot restore the lock file: {}", to_string(restored.error()));
    was_failing = !restored;
  }
}

}  // namespace latchkey
