#include "store/sqlite/store_lock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace latchkey {
namespace {

constexpr Duration kLookAgain{5};

std::string path_of(const std::string& store_file) { return store_file + ".lock"; }

std::string read_address(int file) {
  char text[512];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

Result<StoreLock> StoreLock::acquire(const std::string& store_file, Duration patience, Clock& clock) {
  const int file = ::open(path_of(store_file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(Code::STORE_UNAVAILABLE, "cannot open " + path_of(store_file) + ": " + std::strerror(errno));
  StoreLock lock(file, Held::no);
  const Duration until = clock.elapsed() + patience;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return fail(Code::STORE_UNAVAILABLE, "cannot lock " + path_of(store_file) + ": " + std::strerror(errno));
    const std::string address = read_address(file);
    if (!address.empty()) return fail(Code::STORE_LOCKED, "the server at " + address + " owns " + store_file);
    if (clock.elapsed() >= until) return fail(Code::STORE_LOCKED, "another process owns " + store_file);
    ::poll(nullptr, 0, static_cast<int>(kLookAgain.count()));
  }
  lock.held_ = Held::yes;
  // What a dead server left there is not true any more.
  if (::ftruncate(file, 0) != 0) return fail(Code::STORE_UNAVAILABLE, "cannot write " + path_of(store_file));
  return lock;
}

std::optional<std::string> StoreLock::find_server(const std::string& store_file) {
  const int file = ::open(path_of(store_file).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string address;
  // Whoever can have the lock, even shared, knows that nobody else owns the store.
  if (::flock(file, LOCK_SH | LOCK_NB) != 0) address = read_address(file);
  ::close(file);
  if (address.empty()) return std::nullopt;
  return address;
}

Result<void> StoreLock::announce(const std::string& address) {
  if (::ftruncate(file_, 0) != 0 ||
      ::pwrite(file_, address.data(), address.size(), 0) != static_cast<ssize_t>(address.size()))
    return fail(Code::STORE_UNAVAILABLE, std::string("cannot write the lock file: ") + std::strerror(errno));
  return {};
}

StoreLock::StoreLock(StoreLock&& other) noexcept : file_(std::exchange(other.file_, -1)), held_(other.held_) {}

StoreLock& StoreLock::operator=(StoreLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(held_, other.held_);
  return *this;
}

StoreLock::~StoreLock() {
  if (file_ < 0) return;
  // First the address, then the lock: nobody must find an address without an owner. A full disk cannot stop a cut.
  // Whoever did not get the lock must not touch the owner's address.
  if (held_ == Held::yes && ::ftruncate(file_, 0) != 0) {
  }
  ::close(file_);
}

}  // namespace latchkey
