// FaultDisk: a disk in memory, offered to SQLite as a VFS, that fails or loses power at an operation that a test
// chooses. It records which writes were synced: after a crash the others are present, lost, or partly present.
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
  fail_before,   // the operation reports an I/O error and has no effect
  fail_after,    // the operation takes effect and reports an I/O error
  full,          // one write reports that the disk is full
  crash_before,  // power is lost before the operation: it and all later operations fail without an effect
  crash_after,   // power is lost after the operation
  fail_read,     // one read reports an I/O error
  lose_sync,     // a sync reports an I/O error. Later syncs succeed, but do not write its pages, because Linux marks
                 // pages that it could not write as clean
};
// The unsynced writes that are found after a crash.
enum class Unsynced { lost, written, some };

class FaultDisk {
 public:
  explicit FaultDisk(std::uint64_t seed);
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  const char* vfs() const { return name_.c_str(); }
  // Injects the fault at the nth write, sync, truncation or deletion from now (fail_read: read; lose_sync: sync),
  // counted from 1.
  void plan(Fault fault, std::uint64_t nth);
  // Removes the planned fault.
  void call_off();
  // True if the planned fault occurs within this number of operations from now.
  bool is_due_within(std::uint64_t operations);
  // While the disk is full, it rejects every write that makes a file longer.
  void set_full(bool full) { full_ = full; }
  bool has_struck() const { return struck_; }
  bool is_dead() const { return dead_; }
  // Restores power. Every connection must have been closed.
  void restart(Unsynced unsynced);
  std::uint64_t operations() const { return operations_; }
  // The number of writes to the file that a power loss could undo.
  std::size_t unsynced_writes(const std::string& name);
  // The number of successful syncs of the file.
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
    std::optional<std::string> durable;  // the content of the disk, after a lost sync
    std::set<std::size_t> forgotten;     // pages that differ from `durable`, and that no sync writes before a new write
    std::vector<std::unique_ptr<std::string>> shared_memory;
    std::set<const void*> shared_by;   // handles; closing the last one clears the memory
    std::map<const void*, int> locks;  // level by handle
    int shared[8] = {};
    bool exclusive[8] = {};
  };
  // The result code of the next changing operation, and whether the caller executes it first.
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
  // Tests read these members while a store's threads write them.
  std::atomic<std::uint64_t> operations_ = 0;
  std::uint64_t reads_ = 0, syncs_ = 0;
  std::atomic<bool> struck_ = false;
  std::atomic<bool> dead_ = false;
  bool full_ = false;
};

}  // namespace latchkey
