#include "cli/connection_options.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/shared_options.hpp"
#include "pg/dsn.hpp"
#include "server/address_file.hpp"
#include "server/settings.hpp"

namespace latchkey {
namespace {

// Cron jobs and services may run without HOME; then the user's entry in passwd has it. A relative path is ignored,
// because it would depend on the current folder.
std::string find_home() {
  if (const std::string home = read_variable("HOME"); home.starts_with('/')) return home;
  const passwd* const user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr && user->pw_dir[0] == '/' ? user->pw_dir : "";
}

}  // namespace

std::string default_data_dir() {
  if (const std::string data = read_variable("XDG_DATA_HOME"); data.starts_with('/')) return data + "/latchkey";
  const std::string home = find_home();
  return home.empty() ? "" : home + "/.local/share/latchkey";
}

std::string ConnectionOptions::store_file() const { return find_store_file(store, data_dir); }

Result<void> ConnectionOptions::check() const {
  if (!data_dir.empty()) return {};
  return fail(Code::USAGE, "this user has no home directory: name the folder of the store with --data-dir");
}

Result<std::string> ConnectionOptions::find_server() const {
  if (!server.empty()) return server;
  if (pg::names_postgres(store))
    return fail(Code::USAGE,
                "LATCHKEY_STORE names PostgreSQL, which commands reach through a server: name it with --server URL (or "
                "unset LATCHKEY_STORE to use the data folder)");
  if (auto known = check(); !known) return std::unexpected(known.error());
  if (!store.empty()) {
    if (auto good = check_store(store); !good) return fail(Code::USAGE, "LATCHKEY_STORE: " + good.error().detail);
    return "";
  }
  const auto found = ServerAddressFile::find(data_dir);
  if (!found) return "";
  if (found->address) return *found->address;
  return fail(Code::SERVER_UNREACHABLE,
              data_dir +
                  " is the data folder of a server on PostgreSQL, which is not running: start "
                  "it, or name another one with --server URL (to create an embedded store here, remove " +
                  ServerAddressFile::path_in(data_dir) + ")");
}

ServerLogin ConnectionOptions::login() const {
  return {.token = token, .key_file = data_dir.empty() ? "" : data_dir + "/admin.key", .tenant = tenant};
}

Result<void> ConnectionOptions::create_data_dir() const {
  if (auto known = check(); !known) return known;
  const auto refuse = [&](const std::string& why) {
    return fail(Code::STORE_UNAVAILABLE, "cannot use the data directory " + data_dir + ": " + why);
  };
  std::error_code error;
  const bool is_new = !std::filesystem::exists(data_dir, error);
  std::filesystem::create_directories(data_dir, error);
  if (error) return refuse(error.message());
  if (is_new) ::chmod(data_dir.c_str(), 0700);
  if (::access(data_dir.c_str(), W_OK | X_OK) != 0) return refuse(std::strerror(errno));
  return {};
}

}  // namespace latchkey
