// The settings of `latchkey serve`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "engine/engine.hpp"
#include "http/settings.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace latchkey {

struct ServeSettings {
  std::string data_dir;                   // contains the store and admin.key; created (0700) when it is missing
  std::string listen = "127.0.0.1:7420";  // address:port, [address]:port for IPv6; port 0 lets the kernel choose
  bool insecure_listen = false;           // listen beyond loopback although there is no TLS
  std::string store;                      // "sqlite:FILE", "postgres://…"; DIR/latchkey.db when empty
  std::vector<std::string> cors_origins;  // origins whose scripts may call; "*" for all; empty turns CORS off
  unsigned threads = 2;                   // of the HTTP server
  Duration lock_patience = std::chrono::seconds{5};  // for a command that owns the store to release it
  SqliteSettings sqlite;                             // tuning of the store; its file comes from `store`
  EngineSettings engine;                             // cache, retention, maintenance
  http::Settings http;  // limits and deadlines; address, port, threads and CORS come from the members above
};

struct ListenAddress {
  std::string address;
  std::uint16_t port = 0;
  bool is_loopback = false;
};

// INVALID_ARGUMENT unless the text is an IP address (or "localhost") and a port.
Result<ListenAddress> parse_listen(std::string_view text);
// The file of an SQLite store that check_store() has accepted; DIR/latchkey.db when `store` is empty.
std::string find_store_file(std::string_view store, const std::string& data_dir);
// USAGE unless `store` is postgres://…, sqlite:FILE or a path, so that a mistyped PostgreSQL URL does not become a
// file. The error does not repeat the text, because it may contain a password.
Result<void> check_store(std::string_view store);
// "127.0.0.1:7420", "[::1]:7420"
std::string format_address(const std::string& address, std::uint16_t port);

}  // namespace latchkey
