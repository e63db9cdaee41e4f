#include "server/admin_key.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "api/token.hpp"

namespace latchkey {
namespace {

std::unexpected<Error> cannot(const char* what, const std::string& path) {
  return fail(Code::STORE_UNAVAILABLE, std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

bool sync_folder_of(const std::string& path) {
  const int folder = ::open(path.substr(0, path.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const bool good = ::fsync(folder) == 0;
  ::close(folder);
  return good;
}

// Writes a temporary file and links it, so that a file of this name always contains a whole token.
Result<void> write_key(const std::string& path, const std::string& token) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return cannot("make", draft);
  const std::string line = token + "\n";
  const bool written =
      ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(file) == 0;
  ::close(file);
  const bool linked = written && ::link(draft.c_str(), path.c_str()) == 0;
  const int error = errno;
  ::unlink(draft.c_str());
  errno = error;
  if (!linked) return cannot("write", path);
  if (!sync_folder_of(path)) return cannot("sync the folder of", path);
  return {};
}

Result<std::string> read_key(const std::string& path) {
  std::ifstream file(path);
  if (!file) return cannot("read", path);
  std::string token;
  std::getline(file, token);
  return token;
}

void warn_if_readable(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0 && (facts.st_mode & 077) != 0)
    spdlog::warn("{} has mode {:04o}: others can read it; say chmod 600 {}", path, facts.st_mode & 07777, path);
}

}  // namespace

Result<void> ensure_admin_key(const std::string& path, Store& store, Random& random) {
  if (::access(path.c_str(), F_OK) != 0)
    if (auto written = write_key(path, api::make_token(random).whole); !written) return written;
  const auto token = read_key(path);
  if (!token) return std::unexpected(token.error());
  const auto parts = api::parse_token(*token);
  if (!parts) return fail(Code::STORE_FORMAT, path + " holds no token; move it away and a new one is made");
  warn_if_readable(path);
  const auto known = store.list_tokens();
  if (!known) return std::unexpected(known.error());
  const auto record = std::ranges::find(*known, parts->id, &TokenRecord::id);
  if (record != known->end()) {
    const bool good = record->secret_hash == parts->secret_hash && !record->revoked_at &&
                      (!record->expires_at || store.now() < *record->expires_at);
    if (!good) spdlog::warn("{} holds a token that is not valid; move it away and start again to get another", path);
    return {};
  }
  TokenRecord added_record{std::string(parts->id), parts->secret_hash, "admin.key", Role::admin, {}, store.now()};
  if (const auto added = store.add_token(added_record); !added) return std::unexpected(added.error());
  return {};
}

}  // namespace latchkey
