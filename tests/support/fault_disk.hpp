// FaultDisk: a disk in memory, offered to SQLite as a VFS, that fails or loses power where a test says so.
// It knows which writes were synced: after a crash the others may be there, be gone, or be there in part.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"

struct sqlite3_vfs;

namespace latchkey {

enum class Fault {
  none,
  fail_before,   // the operation reports an I/O error and did nothing
  fail_after,    // it did its work and reports an I/O error all the same
  full,          // no room: writes report that, once
  crash_before,  // power is lost: from here on nothing is done and everything fails
  crash_after,
  fail_read,  // a read reports an I/O error, once
  lose_sync,  // a sync reports an I/O error, and the next ones, though they report none, do not write what it did
              // not: as Linux does, which takes pages it could not write for clean
};
// What of the unsynced writes is found after a crash.
enum class Unsynced { lost, written, some };

class FaultDisk {
 public:
  explicit FaultDisk(std::uint64_t seed);
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  const char* vfs() const { return name_.c_str(); }
  // The fault strikes at the nth write, sync, truncation or deletion from now (fail_read: read; lose_sync: sync),
  // counted from 1.
  void plan(Fault fault, std::uint64_t nth);
  // It does not strike any more.
  void call_off();
  // Whether it strikes within so many operations from now.
  bool is_due_within(std::uint64_t operations);
  // Full until told otherwise: every write that makes a file longer is refused.
  void set_full(bool full) { full_ = full; }
  bool has_struck() const { return struck_; }
  bool is_dead() const { return dead_; }
  // Power is back. Every connection must have been closed.
  void restart(Unsynced unsynced);
  std::uint64_t operations() const { return operations_; }
  // Writes to the file that a loss of power could still take.
  std::size_t unsynced_writes(const std::string& name);
  // How often the file was synced, with success.
  std::uint64_t syncs_of(const std::string& name);

  // For the VFS's methods.
  struct Write {
    std::size_t offset;
    std::size_t size_before;    // of the file
    std::string before, after;  // the bytes there
    bool truncation;
  };
  struct File {
    std::string bytes;
    std::vector<Write> unsynced;
    std::uint64_t syncs = 0;
    std::optional<std::string> durable;  // what is on the disk, once a sync was lost
    std::set<std::size_t> forgotten;     // pages that are not and that no sync will write, until they are written to
    std::vector<std::unique_ptr<std::string>> shared_memory;
    std::set<const void*> shared_by;   // handles; the last one's leaving empties it, as the next opening would
    std::map<const void*, int> locks;  // level by handle
    int shared[8] = {};
    bool exclusive[8] = {};
  };
  // What the caller must report for its next changing operation, and whether to do it first.
  struct Verdict {
    int code;
    bool act;
  };
  Verdict judge(bool grows);
  bool fails_read();
  bool loses_sync(File& file);
  std::shared_ptr<File> find(const std::string& name, bool create);
  void remove(const std::string& name);
  bool dead() const { return dead_; }
  std::mutex& mutex() { return mutex_; }

 private:
  std::uint64_t done() const;

  const std::string name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  SeededRandom random_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>> files_;
  Fault fault_ = Fault::none;
  std::uint64_t strikes_at_ = 0;
  // Read by tests while a store's threads are at work.
  std::atomic<std::uint64_t> operations_ = 0;
  std::uint64_t reads_ = 0, syncs_ = 0;
  std::atomic<bool> struck_ = false;
  std::atomic<bool> dead_ = false;
  bool full_ = false;
};

}  // namespace latchkey
