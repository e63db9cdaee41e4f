// ConnectionOptions: the store or the server that a command uses, as its flags and variables name it.
// shared_options.hpp adds the flags.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "client/server_connection.hpp"

namespace latchkey {

struct ConnectionOptions {
  std::string data_dir;  // empty: the user has no home directory
  std::string server;    // empty: the embedded store, or the server that owns it
  std::string store;     // LATCHKEY_STORE, with the values of `serve --store`; empty: in the data directory
  std::string token;     // empty: from DATA_DIR/admin.key
  std::optional<std::string> tenant;  // none: `default` for claims, every tenant for lists

  std::string store_file() const;
  ServerLogin login() const;
  // USAGE when there is no data directory.
  Result<void> check() const;
  // The address of the server that the command must use: the named one, or the one on PostgreSQL that has this data
  // directory. Empty: the command uses the embedded store. USAGE when LATCHKEY_STORE names PostgreSQL without a named
  // server, or is malformed. SERVER_UNREACHABLE when a server on PostgreSQL used the directory and has stopped.
  Result<std::string> find_server() const;
  // Creates the data directory if it is missing (0700). STORE_UNAVAILABLE when the directory is not writable.
  Result<void> create_data_dir() const;
};

// $XDG_DATA_HOME/latchkey, else ~/.local/share/latchkey, with the home directory from $HOME or the user's entry in
// passwd. Empty when there is no home directory.
std::string default_data_dir();

}  // namespace latchkey
