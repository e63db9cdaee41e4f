#include "server/address_file.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/sqlite/transfer_status.hpp"

namespace latchkey {
namespace {

constexpr auto kCheckPause = std::chrono::milliseconds{500};

struct flock whole_file_lock(short type) {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

std::unexpected<Error> file_error(const char* what, const std::string& path) {
  return fail(Code::STORE_UNAVAILABLE, std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

bool is_same_file(int file, const std::string& path) {
  struct stat ours{}, there{};
  return ::fstat(file, &ours) == 0 && ::stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

}  // namespace

std::string ServerAddressFile::path_in(const std::string& data_dir) { return data_dir + "/postgres.server"; }

ServerAddressFile::ServerAddressFile(const std::string& data_dir, std::string address)
    : path_(path_in(data_dir)), address_(std::move(address)) {
  if (const auto written = ensure_written(); !written)
    spdlog::warn("commands with this data folder will not find this server: {}", to_string(written.error()));
  thread_ = std::thread([this] { work(); });
}

ServerAddressFile::~ServerAddressFile() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (file_ >= 0) ::close(file_);
}

void ServerAddressFile::work() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kCheckPause, [this] { return closing_; })) (void)ensure_written();
}

// Also writes the file again if it was removed.
Result<void> ServerAddressFile::ensure_written() {
  if (file_ >= 0 && is_same_file(file_, path_)) return {};
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return file_error("open", path_);
  struct flock range = whole_file_lock(F_WRLCK);
  if (::fcntl(file, F_OFD_SETLK, &range) != 0) {
    const bool is_taken = errno == EAGAIN || errno == EACCES;
    const auto fault = file_error("lock", path_);
    ::close(file);
    if (is_taken) return {};  // another server has the lock; commands may use that one
    return fault;
  }
  const bool written = ::ftruncate(file, 0) == 0 &&
                       ::pwrite(file, address_.data(), address_.size(), 0) == static_cast<ssize_t>(address_.size()) &&
                       ::fsync(file) == 0;
  if (!written) {
    const auto fault = file_error("write", path_);
    ::close(file);
    return fault;
  }
  if (file_ >= 0) ::close(file_);
  file_ = file;
  return {};
}

std::optional<ServerAddressFile::Found> ServerAddressFile::find(const std::string& data_dir) {
  const std::string path = path_in(data_dir);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ENOTDIR ? std::nullopt : std::optional(Found{});
  struct flock range = whole_file_lock(F_RDLCK);
  const bool is_held = ::fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  char text[512];
  const ssize_t size = is_held ? ::pread(file, text, sizeof text, 0) : 0;
  ::close(file);
  if (size <= 0) return Found{};
  return Found{std::string(text, static_cast<std::size_t>(size))};
}

Result<void> ServerAddressFile::remove(const std::string& data_dir) {
  const auto found = find(data_dir);
  if (!found) return {};
  if (found->address)
    return fail(Code::STORE_LOCKED,
                "the server on PostgreSQL at " + *found->address + " has " + data_dir + " as its data folder");
  const std::string path = path_in(data_dir);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return file_error("remove", path);
  return {};
}

bool has_store_of_its_own(const std::string& data_dir) {
  const std::string file = data_dir + "/latchkey.db";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  try {
    Database database(file, nullptr, Access::read);
    return !find_transfer_status(database);
  } catch (const std::exception&) {  // a command that opens the file reports the error
    return true;
  }
}

}  // namespace latchkey
