#include "client/embedded_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {
namespace {

constexpr Duration kPatience = std::chrono::seconds{10};
// A VFS of SQLite that has the index of the log in memory instead of a file. It locks other readers out.
constexpr const char* kWithoutIndexFile = "unix-excl";

// Writes a file, because quotas and reserved blocks falsify the free space that a file system reports. 32 KiB is the
// size of the log's index.
bool is_disk_full(const std::string& store_file) {
  const std::string folder = std::filesystem::path(store_file).parent_path().string();
  const int file = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  const auto is_full_error = [] { return errno == ENOSPC || errno == EDQUOT || errno == EFBIG; };
  if (file < 0) return is_full_error();
  static constexpr std::array<char, 32 * 1024> kNothing{};
  const ssize_t written = ::write(file, kNothing.data(), kNothing.size());
  const bool full = written < 0 ? is_full_error() : static_cast<std::size_t>(written) < kNothing.size();
  ::close(file);
  return full;
}

}  // namespace

Result<std::optional<std::string>> EmbeddedStore::use(const std::function<void(Store&)>& work) {
  auto lock = StoreLock::acquire(file_, kPatience, clock_);
  if (!lock) {
    if (lock.error().code != Code::STORE_LOCKED) return std::unexpected(explain(lock.error()));
    if (auto address = StoreLock::find_server(file_)) return address;
    return std::unexpected(lock.error());
  }
  auto store = SqliteStore::open({.file = file_}, clock_, random_);
  if (!store && explain(store.error()).code == Code::STORE_FULL)
    store = SqliteStore::open({.file = file_, .vfs = kWithoutIndexFile}, clock_, random_);
  if (!store) return std::unexpected(explain(store.error()));
  lock->record_store();
  work(**store);
  return std::nullopt;  // the store is closed before the lock is released
}

Error EmbeddedStore::explain(Error error) const {
  const bool by_disk = error.code == Code::STORE_FULL || error.code == Code::STORE_UNAVAILABLE;
  if (!by_disk || (error.code == Code::STORE_UNAVAILABLE && !is_disk_full(file_))) return error;
  return {Code::STORE_FULL, "the disk of " + file_ + " is full; nothing was changed"};
}

}  // namespace latchkey
