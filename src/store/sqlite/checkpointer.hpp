// Checkpointer: moves the write-ahead log into the file without making commits wait for the disk.
//
// A plain checkpoint copies pages and then syncs the file, and commits wait for both; the sync is the long part. Here
// the copy is done on the writer's connection without a sync, a thread syncs the file meanwhile, and until it has, a
// reader that stands at the log's end keeps SQLite from starting the log over: what is not durable in the file stays in
// the log. What came in the meantime is little, and a plain checkpoint of that closes the log. See docs/adr/0011.
//
// It relies on every commit syncing the log: no other connection may write the file.
//
// All calls on the writer's thread, outside transactions. A failed sync is thrown as TablesError: open the file anew,
// and do not let SQLite believe its own mark of what is in the file (has_failed()).
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "store/sqlite/database.hpp"

namespace latchkey {

// Whether the file is synced by a thread, or in place at the next commit (stepped stores).
enum class Syncing { by_thread, in_place };

class Checkpointer {
 public:
  // Syncs the file first: a killed process may have copied pages and not lived to sync them.
  Checkpointer(Database& writer, const std::string& file, const char* vfs, int pages, Syncing syncing);
  // Waits for a sync that is under way. If it fails, the log is left for the next opening.
  ~Checkpointer();

  // After a commit: `wal_pages` are in the log.
  void after_commit(int wal_pages);
  // Pages were copied and could not be synced.
  bool has_failed();

 private:
  enum class Phase { idle, syncing, synced, failed };

  Phase phase();
  void set_phase(Phase phase);
  void copy_without_sync();
  void copy_and_sync();
  bool sync_file();
  void work();

  Database& writer_;
  Database guard_;  // holds the log's end while the file is being synced; also the way to the file
  const int pages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::idle;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace latchkey
