#include "cli/connection_options.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/shared_options.hpp"
#include "pg/dsn.hpp"
#include "server/address_file.hpp"
#include "server/folder_access.hpp"
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

bool is_plain_in_shell(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:=@%+,").contains(c);
}

// The text as one word of a shell.
std::string quote_for_shell(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain_in_shell)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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
    if (auto readable = check_access(store_file()); !readable) return std::unexpected(readable.error());
    return "";
  }
  if (auto readable = check_access(data_dir); !readable) return std::unexpected(readable.error());
  if (auto readable = check_access(ServerAddressFile::path_in(data_dir)); !readable)
    return std::unexpected(readable.error());
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

std::string ConnectionOptions::flags() const {
  if (!server.empty()) return server == read_variable("LATCHKEY_SERVER") ? "" : " --server " + quote_for_shell(server);
  const std::string usual = read_variable("LATCHKEY_DATA_DIR");
  if (data_dir.empty() || data_dir == (usual.empty() ? default_data_dir() : usual)) return "";
  return " --data-dir " + quote_for_shell(data_dir);
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
