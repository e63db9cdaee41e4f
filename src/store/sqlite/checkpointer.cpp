#include "store/sqlite/checkpointer.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/tables.hpp"

namespace latchkey {

Checkpointer::Checkpointer(Database& writer, std::string file, const char* vfs, int pages)
    : writer_(writer), file_(std::move(file)), vfs_(vfs), pages_(pages) {
  if (!vfs_) thread_ = std::thread([this] { sync_file(); });
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::after_commit(int wal_pages) {
  Phase phase;
  {
    const std::lock_guard lock(mutex_);
    phase = phase_;
  }
  switch (phase) {
    case Phase::syncing:
      return;
    case Phase::failed:
      throw TablesError(Code::STORE_UNAVAILABLE, "SQLite, checkpoint: the file could not be synced");
    case Phase::idle:
      if (wal_pages < pages_) return;
      if (vfs_) return copy(true);
      return start_sync();
    case Phase::synced:
      break;
  }
  guard_.reset();
  copy(true);
  const std::lock_guard lock(mutex_);
  phase_ = Phase::idle;
}

void Checkpointer::start_sync() {
  guard_ = std::make_unique<Database>(file_, vfs_, Access::read);
  guard_->execute("BEGIN; SELECT 1 FROM lk_state");
  copy(false);
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::syncing;
  }
  changed_.notify_all();
}

// The log itself is synced by every commit; `sync` is for the file it is copied into.
void Checkpointer::copy(bool sync) {
  if (!sync) writer_.execute("PRAGMA synchronous = OFF");
  const int code = sqlite3_wal_checkpoint_v2(writer_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (!sync) writer_.execute("PRAGMA synchronous = FULL");
  // Full: the log stays as it is and is tried again. Busy: a reader stands further back.
  if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_FULL) return;
  writer_.raise("checkpoint");
}

void Checkpointer::sync_file() {
  const int file = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || phase_ == Phase::syncing; });
    if (phase_ == Phase::syncing) {
      lock.unlock();
      const bool good = file >= 0 && ::fdatasync(file) == 0;
      lock.lock();
      phase_ = good ? Phase::synced : Phase::failed;
    }
    if (closing_) break;
  }
  if (file >= 0) ::close(file);
}

}  // namespace latchkey
