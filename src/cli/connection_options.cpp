#include "cli/connection_options.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/time.hpp"
#include "pg/dsn.hpp"
#include "server/address_file.hpp"
#include "server/settings.hpp"

namespace latchkey {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Cron jobs and services may come without HOME; the user's entry says it too. Never what depends on the current folder.
std::string find_home() {
  if (const std::string home = variable("HOME"); home.starts_with('/')) return home;
  const passwd* const user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr && user->pw_dir[0] == '/' ? user->pw_dir : "";
}

}  // namespace

std::string default_data_dir() {
  if (const std::string data = variable("XDG_DATA_HOME"); data.starts_with('/')) return data + "/latchkey";
  const std::string home = find_home();
  return home.empty() ? "" : home + "/.local/share/latchkey";
}

std::string ConnectionOptions::store_file() const { return find_store_file(store, data_dir); }

Result<void> ConnectionOptions::check() const {
  if (!data_dir.empty()) return {};
  return fail(Code::USAGE, "this user has no home directory: say with --data-dir where the store is");
}

Result<std::string> ConnectionOptions::find_server() const {
  if (!server.empty()) return server;
  if (pg::names_postgres(store))
    return fail(Code::USAGE,
                "LATCHKEY_STORE names PostgreSQL, which commands reach through a server: say --server URL (or unset "
                "LATCHKEY_STORE to use the data folder)");
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
                  "it, or say --server URL (to begin an embedded store here, remove " +
                  ServerAddressFile::path_in(data_dir) + ")");
}

ServerLogin ConnectionOptions::login() const {
  return {.token = token, .key_file = data_dir.empty() ? "" : data_dir + "/admin.key", .tenant = tenant};
}

Result<void> ConnectionOptions::prepare() const {
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

void add_server_options(CLI::App& command, ConnectionOptions& place) {
  place.data_dir = default_data_dir();
  place.store = variable("LATCHKEY_STORE");
  command.add_option("--data-dir", place.data_dir, "Folder of the embedded store")
      ->envname("LATCHKEY_DATA_DIR")
      ->capture_default_str();
  command.add_option("--server", place.server, "Speak to this server, http://host:port, and not to the embedded store")
      ->envname("LATCHKEY_SERVER");
  command.add_option("--token", place.token, "Token for the server (default: DATA_DIR/admin.key)")
      ->envname("LATCHKEY_TOKEN");
}

void add_place_options(CLI::App& command, ConnectionOptions& place) {
  add_server_options(command, place);
  command.add_option("--tenant", place.tenant, "Tenant")->envname("LATCHKEY_TENANT");
}

CLI::Option* add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& into,
                          const std::string& description) {
  const auto read = [name, &into](const std::string& text) {
    const Result<Duration> span = parse_duration(text);
    if (!span) throw CLI::ValidationError(name, span.error().detail);
    into = *span;
  };
  return command.add_option_function<std::string>(name, read, description)->type_name("SPAN");
}

void add_retention(CLI::App& command, Retention& retention) {
  add_duration(command, "--retention", retention.done, "How long done and cancelled runs are kept (default: 7d)")
      ->envname("LATCHKEY_RETENTION");
  add_duration(command, "--failed-retention", retention.failed, "How long failed runs are kept (default: 30d)")
      ->envname("LATCHKEY_FAILED_RETENTION");
}

}  // namespace latchkey
