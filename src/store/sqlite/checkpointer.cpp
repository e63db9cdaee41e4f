#include "store/sqlite/checkpointer.hpp"

#include <sqlite3.h>

#include "base/seeded_bug.hpp"
#include "store/tables.hpp"

namespace latchkey {

Checkpointer::Checkpointer(Database& writer, const std::string& file, const char* vfs, int pages, Syncing syncing)
    : writer_(writer), guard_(file, vfs, Access::read), pages_(pages) {
  // A read, because a connection opens its file at its first statement.
  guard_.execute("SELECT 1 FROM lk_state");
  if (!sync_file()) throw TablesError(Code::STORE_UNAVAILABLE, "the file cannot be synced");
  if (syncing == Syncing::by_thread) thread_ = std::thread([this] { work(); });
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (phase() == Phase::syncing) set_phase(sync_file() ? Phase::synced : Phase::failed);
  // Without this, SQLite would find all pages copied and delete the log.
  if (has_failed()) sqlite3_db_config(writer_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Checkpointer::after_commit(int wal_pages) {
  if (phase() == Phase::idle) {
    if (wal_pages < pages_) return;
    guard_.execute("BEGIN; SELECT 1 FROM lk_state");
    copy_without_sync();
    set_phase(Phase::syncing);
    changed_.notify_all();
    return;
  }
  if (phase() == Phase::syncing) {
    if (thread_.joinable()) return;
    set_phase(sync_file() ? Phase::synced : Phase::failed);
  }
  if (has_failed()) throw TablesError(Code::STORE_UNAVAILABLE, "SQLite, checkpoint: the file could not be synced");
  guard_.execute("COMMIT");
  set_phase(Phase::idle);
  copy_and_sync();
}

bool Checkpointer::has_failed() { return phase() == Phase::failed; }

// If the disk is full, the log stays and is copied later. Busy means that a reader uses an earlier part of the log.
void Checkpointer::copy_and_sync() {
  const int code =
      sqlite3_wal_checkpoint_v2(writer_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr) & 0xff;
  if (code != SQLITE_OK && code != SQLITE_BUSY && !writer_.lacks_room()) writer_.raise("checkpoint");
}

void Checkpointer::copy_without_sync() {
  writer_.execute("PRAGMA synchronous = OFF");
  try {
    copy_and_sync();
  } catch (const TablesError&) {
    set_phase(Phase::failed);
    throw;
  }
  if (!LK_SEEDED(log_not_synced)) writer_.execute("PRAGMA synchronous = FULL");
}

// Uses SQLite's own descriptor: closing another one would drop the locks that SQLite has on the file.
bool Checkpointer::sync_file() {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(guard_.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file->pMethods)
    return false;
  return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) == SQLITE_OK ||
         LK_SEEDED(failed_sync_ignored);
}

Checkpointer::Phase Checkpointer::phase() {
  const std::lock_guard lock(mutex_);
  return phase_;
}

void Checkpointer::set_phase(Phase phase) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
}

void Checkpointer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || phase_ == Phase::syncing; });
    if (phase_ != Phase::syncing) return;
    lock.unlock();
    const bool good = sync_file();
    lock.lock();
    phase_ = good ? Phase::synced : Phase::failed;
  }
}

}  // namespace latchkey
