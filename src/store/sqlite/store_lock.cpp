#include "store/sqlite/store_lock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace latchkey {
namespace {

constexpr Duration kLookAgain{5};
// The first line of FILE.lock when FILE has been a store. With this line, an empty FILE is not a new store.
constexpr std::string_view kStoreLine = "latchkey store\n";

std::string path_of(const std::string& store_file) { return store_file + ".lock"; }

std::unexpected<Error> cannot(const char* what, const std::string& path) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return fail(is_full ? Code::STORE_FULL : Code::STORE_UNAVAILABLE,
              std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

struct flock whole_file(short type) {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

// True if the server that wrote the address lives: it has this lock while its descriptor is open. Commands never do.
bool has_live_server(int file) {
  struct flock range = whole_file(F_RDLCK);
  return ::fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

bool lock_address(int file) {
  struct flock range = whole_file(F_WRLCK);
  return ::fcntl(file, F_OFD_SETLK, &range) == 0;
}

std::string read_text(int file) {
  char text[512];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

bool was_store(int file) { return read_text(file).starts_with(kStoreLine); }

std::string read_address(int file) {
  const std::string text = read_text(file);
  return text.starts_with(kStoreLine) ? text.substr(kStoreLine.size()) : text;
}

// The line about the store stays.
bool erase_address(int file) {
  return ::ftruncate(file, was_store(file) ? static_cast<off_t>(kStoreLine.size()) : 0) == 0;
}

// Overwrites before it truncates: on a full disk the file still has its block, and a failure leaves the first line.
bool write(int file, std::string_view text) {
  const ssize_t size = ::pwrite(file, text.data(), text.size(), 0);
  if (size >= 0 && static_cast<std::size_t>(size) < text.size()) errno = ENOSPC;
  return size == static_cast<ssize_t>(text.size()) && ::ftruncate(file, size) == 0;
}

bool is_empty(int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 && facts.st_size == 0;
}

// A file that was removed from its path can still be locked, but its lock has no meaning.
bool is_at(int file, const std::string& path) {
  struct stat ours{}, there{};
  return ::fstat(file, &ours) == 0 && ::stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

Result<bool> try_lock(int file, const std::string& path) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return cannot("lock", path);
  }
  return is_at(file, path);
}

}  // namespace

StoreLock::File::File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

StoreLock::File& StoreLock::File::operator=(File&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

StoreLock::File::~File() {
  if (number_ >= 0) ::close(number_);
}

Result<std::optional<StoreLock::File>> StoreLock::try_beside(const std::string& store_file) {
  const std::string path = path_of(store_file);
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.number() < 0) return cannot("open", path);
  const auto locked = try_lock(file.number(), path);
  if (!locked) return std::unexpected(locked.error());
  if (!*locked) return std::nullopt;
  return std::optional(std::move(file));
}

// FILE.lock first: only its owner may open and close the store's file.
Result<std::optional<StoreLock>> StoreLock::try_both(const std::string& store_file) {
  auto beside = try_beside(store_file);
  if (!beside) return std::unexpected(beside.error());
  if (!*beside) return std::nullopt;
  File store(::open(store_file.c_str(), O_RDWR | O_CLOEXEC));
  if (store.number() < 0 && errno == ENOENT) {
    // The operator has removed the store, so a new one begins. If this process dies before the new store is written,
    // the file must not look like a store that was cut.
    if (::ftruncate((*beside)->number(), 0) != 0) return cannot("write", path_of(store_file));
    store = File(::open(store_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  if (store.number() < 0 && errno == EISDIR) return fail(Code::STORE_FORMAT, store_file + " is a folder, not a store");
  if (store.number() < 0) return cannot("open", store_file);
  const auto locked = try_lock(store.number(), store_file);
  if (!locked) return std::unexpected(locked.error());
  if (!*locked) return std::nullopt;
  if (is_empty(store.number()) && was_store((*beside)->number()))
    return fail(
        Code::STORE_FORMAT,
        store_file +
            " was a store and is empty now: put it back from a copy, or remove it and its -wal to begin a new one");
  return StoreLock(store_file, **std::move(beside), std::move(store));
}

Result<StoreLock> StoreLock::acquire(const std::string& store_file, Duration patience, Clock& clock) {
  const Duration until = clock.elapsed() + patience;
  for (;;) {
    auto lock = try_both(store_file);
    if (!lock) return std::unexpected(lock.error());
    if (*lock) {
      // The address may be of a server that has died.
      if (!erase_address((*lock)->beside_.number())) return cannot("write", path_of(store_file));
      return **std::move(lock);
    }
    if (const auto address = find_server(store_file))
      return fail(Code::STORE_LOCKED, "the server at " + *address + " owns " + store_file);
    if (clock.elapsed() >= until) return fail(Code::STORE_LOCKED, "another process owns " + store_file);
    ::poll(nullptr, 0, static_cast<int>(kLookAgain.count()));
  }
}

std::optional<std::string> StoreLock::find_server(const std::string& store_file) {
  const int file = ::open(path_of(store_file).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  // The address of a dead server stays until the next owner erases it.
  const std::string address = has_live_server(file) ? read_address(file) : std::string();
  ::close(file);
  if (address.empty()) return std::nullopt;
  return address;
}

// Errors are ignored: replays must work on a full disk, and the next owner records the store.
void StoreLock::record_store() {
  const int file = beside_.number();
  if (!is_empty(store_.number()) && !was_store(file)) (void)write(file, kStoreLine);
}

Result<void> StoreLock::announce(const std::string& address) {
  const int file = beside_.number();
  const std::string made(is_empty(store_.number()) ? std::string_view() : kStoreLine);
  address_ = address;
  is_announced_ = write(file, made + address) && lock_address(file);
  if (!is_announced_) return cannot("write", path_of(store_file_));
  return {};
}

Result<void> StoreLock::restore_lock_file() {
  if (is_at(beside_.number(), path_of(store_file_)))
    return is_announced_ ? Result<void>() : announce(std::string(address_));
  auto beside = try_beside(store_file_);
  if (!beside) return std::unexpected(beside.error());
  // A process that tries to own the store has the lock for a moment; the next call acquires it.
  if (!*beside) return fail(Code::STORE_LOCKED, "another process has " + path_of(store_file_));
  beside_ = **std::move(beside);
  return announce(std::string(address_));
}

StoreLock::~StoreLock() {
  // The address first, then the lock: an address must have an owner. Truncating a file works on a full disk, too.
  if (beside_.number() >= 0) (void)erase_address(beside_.number());
}

}  // namespace latchkey
