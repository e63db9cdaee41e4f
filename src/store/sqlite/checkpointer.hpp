// Checkpointer: moves the write-ahead log into the file without making commits wait for the disk.
//
// A plain checkpoint copies pages and then syncs the file, and commits wait for both; the sync is the long part. Here
// the copy is done on the writer's connection without a sync, a thread syncs the file meanwhile, and until it has, a
// reader that stands at the log's end keeps SQLite from starting the log over: what is not durable in the file stays in
// the log. What came in the meantime is little, and a plain checkpoint of that closes the log.
//
// All calls on the writer's thread, outside transactions. A failed sync is thrown as TablesError: open the file anew.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "store/sqlite/database.hpp"

namespace latchkey {

class Checkpointer {
 public:
  // Syncs on a thread only if the file is a real one; in place otherwise.
  Checkpointer(Database& writer, std::string file, const char* vfs, int pages);
  // Waits for a sync that is under way.
  ~Checkpointer();

  // After a commit: `wal_pages` are in the log.
  void after_commit(int wal_pages);

 private:
  enum class Phase { idle, syncing, synced, failed };

  void copy(bool sync);
  void start_sync();
  void sync_file();

  Database& writer_;
  const std::string file_;
  const char* const vfs_;
  const int pages_;
  std::unique_ptr<Database> guard_;  // holds the log's end while the file is being synced
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::idle;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace latchkey
