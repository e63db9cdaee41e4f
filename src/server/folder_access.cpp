#include "server/folder_access.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace latchkey {
namespace {

std::string find_owner(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return "";
  passwd entry{};
  passwd* user = nullptr;
  std::array<char, 4096> names{};
  if (::getpwuid_r(facts.st_uid, &entry, names.data(), names.size(), &user) == 0 && user != nullptr)
    return user->pw_name;
  return std::to_string(facts.st_uid);
}

bool is_denied(const std::string& path, int mode) { return ::access(path.c_str(), mode) != 0 && errno == EACCES; }

std::unexpected<Error> deny(const std::string& path) {
  const std::string owner = find_owner(path);
  return fail(Code::STORE_UNAVAILABLE, "cannot read " + path + ": " + std::strerror(EACCES) + " (" +
                                           (owner.empty() ? "" : "owned by " + owner + "; ") +
                                           "use sudo, or --server and --token)");
}

}  // namespace

Result<void> check_access(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  if (error) return {};  // the current folder was removed: the caller's own error says so
  std::filesystem::path at;
  for (const auto& part : whole) {
    at /= part;
    const bool is_folder = std::filesystem::is_directory(at, error);
    if (is_denied(at.string(), is_folder ? X_OK : F_OK)) return deny(at.string());
  }
  if (!std::filesystem::is_directory(whole, error) && is_denied(whole.string(), R_OK)) return deny(whole.string());
  return {};
}

}  // namespace latchkey
