// Checkpointer: copies the write-ahead log into the file, so that commits do not wait for the sync of the file.
//
// A plain checkpoint copies pages and then syncs the file, and commits wait for both; the sync is the long part. Here
// the writer's connection copies without a sync, and a thread syncs the file. Until the sync has succeeded, a read
// transaction at the end of the log prevents SQLite from starting the log over: pages that are not durable in the file
// stay in the log. Few pages are added meanwhile; a plain checkpoint of these closes the log. See docs/adr/0011.
//
// It relies on the sync of the log in every commit: no other connection may write the file.
//
// All calls on the writer's thread, outside transactions. A failed sync is thrown as TablesError. The store must then
// open the file anew and must not trust SQLite's record of which pages are in the file (has_failed()).
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "store/sqlite/database.hpp"

namespace latchkey {

// Where the file is synced: by a thread, or by the caller at the next commit (stepped stores).
enum class Syncing { by_thread, in_place };

class Checkpointer {
 public:
  // Syncs the file first: an earlier process may have been killed between copying pages and syncing them.
  Checkpointer(Database& writer, const std::string& file, const char* vfs, int pages, Syncing syncing);
  // Waits for a sync that is under way. If the sync fails, the log stays for the next opening.
  ~Checkpointer();

  // To be called after a commit; `wal_pages` is the size of the log.
  void after_commit(int wal_pages);
  // True if pages were copied and could not be synced.
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
  Database guard_;  // has the read transaction at the log's end during a sync; also gives access to the file
  const int pages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::idle;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace latchkey
