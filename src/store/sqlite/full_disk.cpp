#include "store/sqlite/full_disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace latchkey {
namespace {

// A VFS of SQLite that has the index of the log in memory instead of a file. It locks other readers out.
constexpr const char* kWithoutIndexFile = "unix-excl";
constexpr std::size_t kIndexBytes = 32 * 1024;

}  // namespace

bool is_disk_full(const std::string& store_file) {
  const std::string folder = std::filesystem::path(store_file).parent_path().string();
  const int file = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  const auto is_full_error = [] { return errno == ENOSPC || errno == EDQUOT || errno == EFBIG; };
  if (file < 0) return is_full_error();
  static constexpr std::array<char, kIndexBytes> kNothing{};
  const ssize_t written = ::write(file, kNothing.data(), kNothing.size());
  const bool full = written < 0 ? is_full_error() : static_cast<std::size_t>(written) < kNothing.size();
  ::close(file);
  return full;
}

Error explain_full_disk(Error error, const std::string& store_file) {
  const bool by_disk = error.code == Code::STORE_FULL || error.code == Code::STORE_UNAVAILABLE;
  if (!by_disk || (error.code == Code::STORE_UNAVAILABLE && !is_disk_full(store_file))) return error;
  return {Code::STORE_FULL, "the disk of " + store_file + " is full; nothing was changed"};
}

Result<std::unique_ptr<SqliteStore>> open_even_if_full(SqliteSettings settings, Clock& clock, Random& random) {
  auto store = SqliteStore::open(settings, clock, random);
  const auto explain = [&] { return explain_full_disk(store.error(), settings.file); };
  if (!store && !settings.vfs && explain().code == Code::STORE_FULL) {
    SqliteSettings without_index_file = settings;
    without_index_file.vfs = kWithoutIndexFile;
    store = SqliteStore::open(std::move(without_index_file), clock, random);
  }
  if (!store) return std::unexpected(explain());
  return store;
}

}  // namespace latchkey
