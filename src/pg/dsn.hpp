// Connection strings. A string with several hosts is split into one string per host: libpq skips a host that refuses a
// connection, but not one that hangs up or never replies.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace latchkey::pg {

// True for postgres://… and postgresql://….
bool names_postgres(std::string_view store);

struct HostUrl {
  std::string conninfo;
  Duration connect_timeout{};
};

// In order. A string that cannot be parsed is returned unchanged: libpq reports the reason.
std::vector<HostUrl> split_hosts(const std::string& url);

// The URL without its password, for logs and errors. None if it cannot be parsed, or if a part looks like a piece of a
// password whose special characters were not percent-encoded.
std::optional<std::string> describe(const std::string& url);

// The URL's settings by libpq's keywords; none if it cannot be parsed.
std::optional<std::map<std::string, std::string>> read_settings(const std::string& url);

struct Host {
  std::string name;
  std::string address;  // empty: resolve the name
  std::string port;     // empty: libpq's default
};
// At least one host; parts that the settings do not name are empty.
std::vector<Host> list_hosts(const std::map<std::string, std::string>& settings);

// A connection string for libpq.
std::string make_conninfo(const std::map<std::string, std::string>& settings);

}  // namespace latchkey::pg
