#include "client/read_only_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/sqlite/transfer_status.hpp"
#include "store/tables.hpp"

namespace latchkey {
namespace {

constexpr Duration kReadPatience = std::chrono::seconds{10};
constexpr int kLookAgainMs = 5;

bool is_write_refused(const std::string& path) {
  return ::access(path.c_str(), W_OK) != 0 && (errno == EACCES || errno == EROFS);
}

bool has_bytes(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && facts.st_size > 0;
}

// SQLite reads an immutable file without a log and without locks.
std::string make_uri(const std::string& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string())
    uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<unsigned>(c)) : std::string(1, c);
  return uri + "?immutable=1";
}

}  // namespace

bool ReadOnlyStore::is_needed(const std::string& file) {
  const std::string folder = std::filesystem::absolute(file).parent_path().string();
  if (::access(file.c_str(), R_OK) != 0) return false;
  return is_write_refused(file) || is_write_refused(folder) || is_write_refused(file + ".lock");
}

Result<std::unique_ptr<ReadOnlyStore>> ReadOnlyStore::open(const std::string& file, Clock& clock) {
  std::unique_ptr<ReadOnlyStore> store(new ReadOnlyStore(::open((file + ".lock").c_str(), O_RDONLY | O_CLOEXEC)));
  // Without the lock, a server could write while this process reads. Only a file that never had an owner has no lock.
  if (store->lock_ < 0 && errno != ENOENT)
    return fail(Code::STORE_UNAVAILABLE, "cannot read " + file + ".lock: " + std::strerror(errno) +
                                             "; use its owner's account, or --server and --token");
  const Duration until = clock.elapsed() + kReadPatience;
  while (store->lock_ >= 0 && ::flock(store->lock_, LOCK_SH | LOCK_NB) != 0) {
    if (clock.elapsed() >= until) return fail(Code::STORE_LOCKED, "another process owns " + file);
    ::poll(nullptr, 0, kLookAgainMs);
  }
  if (has_bytes(file + "-wal"))
    return fail(Code::STORE_UNAVAILABLE, "the store was not closed, and this user may not write in the folder of " +
                                             file + ": a command of its owner closes it");
  try {
    const std::string uri = make_uri(file);
    {
      Database database(uri, nullptr, Access::read);
      if (const auto moved = find_transfer_status(database)) return fail(Code::STORE_MOVED, describe(*moved));
    }
    store->reader_ = std::make_unique<SqliteReader>(uri, nullptr, store->window_);
    return store;
  } catch (const TablesError& error) {
    return fail(error.code, error.what());
  }
}

ReadOnlyStore::~ReadOnlyStore() {
  reader_.reset();
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace latchkey
