// ConnectionOptions: where the runs are that a command is about: the flags that every command has, and what follows
// from them.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "cli/cli_fwd.hpp"
#include "client/remote_server.hpp"
#include "model/decide.hpp"

namespace latchkey {

struct ConnectionOptions {
  std::string data_dir;               // empty: there is no home directory either
  std::string server;                 // empty: the embedded store, or the server that owns it
  std::string store;                  // LATCHKEY_STORE: whatever `serve` takes; empty: in the data directory
  std::string token;                  // empty: from DATA_DIR/admin.key
  std::optional<std::string> tenant;  // none: `default` for claims, every tenant for lists

  std::string store_file() const;
  ServerLogin login() const;
  // USAGE when there is no data directory.
  Result<void> check() const;
  // The server to speak to: the one that was named, or the one on PostgreSQL whose data directory this is; empty: look
  // at the embedded store. USAGE where LATCHKEY_STORE says PostgreSQL and no server is named, or cannot be read;
  // SERVER_UNREACHABLE when a server on PostgreSQL used the directory and has ended.
  Result<std::string> find_server() const;
  // Makes the data directory if it is missing (0700). STORE_UNAVAILABLE when it cannot be written.
  Result<void> prepare() const;
};

// $XDG_DATA_HOME/latchkey, else ~/.local/share/latchkey, by $HOME or the user's entry; empty when there is no home.
std::string default_data_dir();

// --data-dir, --server, --token, --tenant; also LATCHKEY_DATA_DIR, LATCHKEY_SERVER, LATCHKEY_TOKEN, LATCHKEY_TENANT.
void add_place_options(CLI::App& command, ConnectionOptions& place);
// The same without --tenant.
void add_server_options(CLI::App& command, ConnectionOptions& place);

// An option whose value is a duration such as 90s; a wrong one is a usage error.
CLI::Option* add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& into,
                          const std::string& description);
// --retention and --failed-retention; also LATCHKEY_RETENTION and LATCHKEY_FAILED_RETENTION.
void add_retention(CLI::App& command, Retention& retention);

}  // namespace latchkey
