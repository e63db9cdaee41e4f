#include "support/fault_disk.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace latchkey {
namespace {

// One open file of one connection.
struct Handle {
  sqlite3_file base;
  FaultDisk* disk;
  std::shared_ptr<FaultDisk::File>* file;
  std::string* remove_on_close;
  int own_shared = 0, own_exclusive = 0;  // the handle's locks of the shared memory, one bit each
};

Handle& handle(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
FaultDisk::File& content(sqlite3_file* file) { return **handle(file).file; }

// The size of a page of the page cache.
constexpr std::size_t kPage = 4096;

void undo_unsynced(const FaultDisk::File& file, std::string& bytes) {
  for (auto write = file.unsynced.rbegin(); write != file.unsynced.rend(); ++write) {
    bytes.resize(std::max(bytes.size(), write->size_before));
    bytes.replace(write->offset, write->before.size(), write->before);
    bytes.resize(write->size_before);
  }
}

void make_durable(FaultDisk::File& file) {
  file.unsynced.clear();
  if (!file.durable) return;
  file.durable->resize(file.bytes.size());
  for (std::size_t at = 0; at < file.bytes.size(); at += kPage)
    if (!file.forgotten.contains(at / kPage)) file.durable->replace(at, kPage, file.bytes, at, kPage);
}

int close_file(sqlite3_file* file) {
  Handle& h = handle(file);
  const std::lock_guard lock(h.disk->mutex());
  for (int i = 0; i < 8; ++i) {
    if (h.own_shared & 1 << i) content(file).shared[i] -= 1;
    if (h.own_exclusive & 1 << i) content(file).exclusive[i] = false;
  }
  content(file).locks.erase(file);
  if (h.remove_on_close) h.disk->remove(*h.remove_on_close);
  delete h.remove_on_close;
  delete h.file;
  return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* to, int amount, sqlite3_int64 offset) {
  Handle& h = handle(file);
  const std::lock_guard lock(h.disk->mutex());
  if (h.disk->dead() || h.disk->fails_read()) return SQLITE_IOERR_READ;
  const std::string& bytes = content(file).bytes;
  const auto at = std::min(static_cast<std::size_t>(offset), bytes.size());
  const auto there = std::min(static_cast<std::size_t>(amount), bytes.size() - at);
  std::memcpy(to, bytes.data() + at, there);
  if (there == static_cast<std::size_t>(amount)) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, static_cast<std::size_t>(amount) - there);
  return SQLITE_IOERR_SHORT_READ;
}

int write_file(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
  Handle& h = handle(file);
  const std::lock_guard lock(h.disk->mutex());
  std::string& bytes = content(file).bytes;
  const auto at = static_cast<std::size_t>(offset), size = static_cast<std::size_t>(amount);
  const auto verdict = h.disk->judge(at + size > bytes.size());
  if (verdict.act) {
    FaultDisk::Write write{at, bytes.size(), {}, {static_cast<const char*>(from), size}, false};
    if (at < bytes.size()) write.before = bytes.substr(at, size);
    if (bytes.size() < at + size) bytes.resize(at + size);
    bytes.replace(at, size, write.after);
    content(file).unsynced.push_back(std::move(write));
    for (std::size_t page = at / kPage; page <= (at + size - 1) / kPage; ++page) content(file).forgotten.erase(page);
  }
  return verdict.code;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  Handle& h = handle(file);
  const std::lock_guard lock(h.disk->mutex());
  const auto verdict = h.disk->judge(false);
  std::string& bytes = content(file).bytes;
  if (verdict.act && static_cast<std::size_t>(size) < bytes.size()) {
    content(file).unsynced.push_back(
        {static_cast<std::size_t>(size), bytes.size(), bytes.substr(static_cast<std::size_t>(size)), {}, true});
    bytes.resize(static_cast<std::size_t>(size));
  }
  return verdict.code;
}

int sync_file(sqlite3_file* file, int) {
  Handle& h = handle(file);
  const std::lock_guard lock(h.disk->mutex());
  if (h.disk->loses_sync(content(file))) return SQLITE_IOERR_FSYNC;
  const auto verdict = h.disk->judge(false);
  if (verdict.act) make_durable(content(file));
  content(file).syncs += verdict.code == SQLITE_OK;
  return verdict.code == SQLITE_OK || verdict.code == SQLITE_FULL ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  const std::lock_guard lock(handle(file).disk->mutex());
  *size = static_cast<sqlite3_int64>(content(file).bytes.size());
  return SQLITE_OK;
}

int lock_file(sqlite3_file* file, int level) {
  const std::lock_guard lock(handle(file).disk->mutex());
  auto& locks = content(file).locks;
  const int barred_by = level == SQLITE_LOCK_SHARED     ? SQLITE_LOCK_PENDING
                        : level == SQLITE_LOCK_RESERVED ? SQLITE_LOCK_RESERVED
                                                        : SQLITE_LOCK_SHARED;
  for (const auto& [other, held] : locks)
    if (other != file && held >= barred_by) return SQLITE_BUSY;
  locks[file] = std::max(locks[file], level);
  return SQLITE_OK;
}

int unlock_file(sqlite3_file* file, int level) {
  const std::lock_guard lock(handle(file).disk->mutex());
  content(file).locks[file] = level;
  return SQLITE_OK;
}

int check_lock(sqlite3_file* file, int* reserved) {
  const std::lock_guard lock(handle(file).disk->mutex());
  *reserved = 0;
  for (const auto& [other, held] : content(file).locks) *reserved |= held >= SQLITE_LOCK_RESERVED;
  return SQLITE_OK;
}
int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 512; }
int characteristics(sqlite3_file*) { return 0; }

int map_shared(sqlite3_file* file, int region, int size, int extend, void volatile** where) {
  const std::lock_guard lock(handle(file).disk->mutex());
  auto& regions = content(file).shared_memory;
  content(file).shared_by.insert(file);
  while (extend && static_cast<int>(regions.size()) <= region)
    regions.push_back(std::make_unique<std::string>(static_cast<std::size_t>(size), '\0'));
  *where = static_cast<int>(regions.size()) > region ? regions[static_cast<std::size_t>(region)]->data() : nullptr;
  return SQLITE_OK;
}

int lock_shared(sqlite3_file* file, int offset, int count, int flags) {
  Handle& h = handle(file);
  const std::lock_guard lock(h.disk->mutex());
  FaultDisk::File& f = content(file);
  for (int i = offset; i < offset + count; ++i) {
    const int bit = 1 << i;
    if (flags & SQLITE_SHM_UNLOCK) continue;
    if (f.exclusive[i] && !(h.own_exclusive & bit)) return SQLITE_BUSY;
    if (flags & SQLITE_SHM_EXCLUSIVE && f.shared[i] > (h.own_shared & bit ? 1 : 0)) return SQLITE_BUSY;
  }
  for (int i = offset; i < offset + count; ++i) {
    const int bit = 1 << i;
    if (flags & SQLITE_SHM_UNLOCK) {
      if (h.own_shared & bit) f.shared[i] -= 1;
      if (h.own_exclusive & bit) f.exclusive[i] = false;
      h.own_shared &= ~bit, h.own_exclusive &= ~bit;
    } else if (flags & SQLITE_SHM_SHARED) {
      if (!(h.own_shared & bit)) f.shared[i] += 1;
      h.own_shared |= bit;
    } else {
      f.exclusive[i] = true;
      h.own_exclusive |= bit;
    }
  }
  return SQLITE_OK;
}

void barrier(sqlite3_file*) { std::atomic_thread_fence(std::memory_order_seq_cst); }

int unmap_shared(sqlite3_file* file, int remove) {
  const std::lock_guard lock(handle(file).disk->mutex());
  content(file).shared_by.erase(file);
  if (remove || content(file).shared_by.empty()) content(file).shared_memory.clear();
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {2,         close_file,   read_file,       write_file,  truncate_file,
                                     sync_file, file_size,    lock_file,       unlock_file, check_lock,
                                     control,   sector_size,  characteristics, map_shared,  lock_shared,
                                     barrier,   unmap_shared, nullptr,         nullptr};

FaultDisk& disk_of(sqlite3_vfs* vfs) { return *static_cast<FaultDisk*>(vfs->pAppData); }

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  static std::atomic<int> unnamed{0};
  FaultDisk& disk = disk_of(vfs);
  const std::lock_guard lock(disk.mutex());
  file->pMethods = nullptr;
  if (disk.dead()) return SQLITE_CANTOPEN;
  const std::string path = name ? name : "temp-" + std::to_string(++unnamed);
  auto found = disk.find(path, (flags & SQLITE_OPEN_CREATE) != 0);
  if (!found) return SQLITE_CANTOPEN;
  Handle& h = handle(file);
  h.disk = &disk;
  h.file = new std::shared_ptr<FaultDisk::File>(std::move(found));
  h.remove_on_close = flags & SQLITE_OPEN_DELETEONCLOSE ? new std::string(path) : nullptr;
  h.own_shared = h.own_exclusive = 0;
  file->pMethods = &kMethods;
  if (out_flags) *out_flags = flags;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs* vfs, const char* name, int) {
  FaultDisk& disk = disk_of(vfs);
  const std::lock_guard lock(disk.mutex());
  const auto verdict = disk.judge(false);
  if (verdict.act) disk.remove(name);
  return verdict.code;
}

int access_file(sqlite3_vfs* vfs, const char* name, int, int* there) {
  FaultDisk& disk = disk_of(vfs);
  const std::lock_guard lock(disk.mutex());
  const auto file = disk.find(name, false);
  *there = file && !file->bytes.empty();
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

}  // namespace

FaultDisk::FaultDisk(std::uint64_t seed)
    : name_([] {
        static std::atomic<int> disks{0};
        return "fault-disk-" + std::to_string(++disks);
      }()),
      random_(seed) {
  const sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  vfs_ = std::make_unique<sqlite3_vfs>(*real);
  vfs_->szOsFile = sizeof(Handle);
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->pNext = nullptr;
  vfs_->xOpen = open_file;
  vfs_->xDelete = delete_file;
  vfs_->xAccess = access_file;
  vfs_->xFullPathname = full_path;
  sqlite3_vfs_register(vfs_.get(), 0);
}

FaultDisk::~FaultDisk() { sqlite3_vfs_unregister(vfs_.get()); }

void FaultDisk::plan(Fault fault, std::uint64_t nth) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  strikes_at_ = done() + nth;
  struck_ = false;
}

void FaultDisk::call_off() {
  const std::lock_guard lock(mutex_);
  fault_ = Fault::none;
}

bool FaultDisk::is_due_within(std::uint64_t operations) {
  const std::lock_guard lock(mutex_);
  return fault_ != Fault::none && done() < strikes_at_ && strikes_at_ - done() <= operations;
}

// The number of operations so far at which the planned fault could have occurred.
std::uint64_t FaultDisk::done() const {
  return fault_ == Fault::fail_read ? reads_ : fault_ == Fault::lose_sync ? syncs_ : operations_.load();
}

std::size_t FaultDisk::unsynced_writes(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto file = find(name, false);
  return file ? file->unsynced.size() : 0;
}

std::uint64_t FaultDisk::syncs_of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto file = find(name, false);
  return file ? file->syncs : 0;
}

bool FaultDisk::fails_read() {
  reads_ += 1;
  if (fault_ != Fault::fail_read || reads_ != strikes_at_) return false;
  struck_ = true;
  return true;
}

bool FaultDisk::loses_sync(File& file) {
  syncs_ += 1;
  if (fault_ != Fault::lose_sync || syncs_ != strikes_at_ || dead_) return false;
  struck_ = true;
  file.durable = file.bytes;
  undo_unsynced(file, *file.durable);
  for (const Write& write : file.unsynced)
    for (std::size_t page = write.offset / kPage; page * kPage < write.offset + write.after.size(); ++page)
      file.forgotten.insert(page);
  file.unsynced.clear();
  return true;
}

FaultDisk::Verdict FaultDisk::judge(bool grows) {
  if (dead_) return {SQLITE_IOERR_WRITE, false};
  operations_ += 1;
  if (full_ && grows) return {SQLITE_FULL, false};
  if (fault_ == Fault::none || fault_ == Fault::fail_read || fault_ == Fault::lose_sync || operations_ != strikes_at_)
    return {SQLITE_OK, true};
  struck_ = true;
  switch (fault_) {
    case Fault::fail_before:
      return {SQLITE_IOERR_WRITE, false};
    case Fault::fail_after:
      return {SQLITE_IOERR_WRITE, true};
    case Fault::full:
      return {SQLITE_FULL, false};
    case Fault::crash_before:
      dead_ = true;
      return {SQLITE_IOERR_WRITE, false};
    case Fault::crash_after:
      dead_ = true;
      return {SQLITE_IOERR_WRITE, true};
    case Fault::none:
    case Fault::fail_read:
    case Fault::lose_sync:
      break;
  }
  return {SQLITE_OK, true};
}

std::shared_ptr<FaultDisk::File> FaultDisk::find(const std::string& name, bool create) {
  const auto at = files_.find(name);
  if (at != files_.end()) return at->second;
  if (!create) return nullptr;
  return files_[name] = std::make_shared<File>();
}

void FaultDisk::remove(const std::string& name) { files_.erase(name); }

void FaultDisk::restart(Unsynced unsynced) {
  const std::lock_guard lock(mutex_);
  dead_ = false;
  fault_ = Fault::none;
  for (auto& [name, file] : files_) {
    auto fresh = std::make_shared<File>();
    fresh->bytes = std::move(file->bytes);
    if (unsynced == Unsynced::lost && file->durable) {
      fresh->bytes = *std::move(file->durable);
    } else if (unsynced != Unsynced::written) {
      undo_unsynced(*file, fresh->bytes);
      for (const Write& write : file->unsynced) {
        if (unsynced == Unsynced::lost || random_.one_in(2)) continue;
        if (write.truncation) {
          fresh->bytes.resize(std::min(write.offset, fresh->bytes.size()));
          continue;
        }
        if (fresh->bytes.size() < write.offset + write.after.size())
          fresh->bytes.resize(write.offset + write.after.size());
        fresh->bytes.replace(write.offset, write.after.size(), write.after);
      }
    }
    file = std::move(fresh);
  }
}

}  // namespace latchkey
