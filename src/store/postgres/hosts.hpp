// A connection string that names several hosts, as one string for each: libpq passes over a host that refuses, but not
// over one that hangs up or says nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace latchkey::pg {

// Whether it is meant for PostgreSQL: postgres://… or postgresql://….
bool names_postgres(std::string_view store);

struct HostUrl {
  std::string conninfo;
  Duration patience{};  // with this host
};

// In order; one when it cannot be read, as it was: libpq says why.
std::vector<HostUrl> split_hosts(const std::string& url);

// As people may see it, without the password; none where it cannot be read, or not as it was meant: a password whose
// special characters are not percent-encoded ends up in other parts, and from there in complaints.
std::optional<std::string> describe(const std::string& url);

// What the URL itself says, by libpq's names; none: it cannot be read.
std::optional<std::map<std::string, std::string>> read_settings(const std::string& url);

struct Host {
  std::string name;
  std::string address;  // empty: by its name
  std::string port;     // empty: libpq's
};
// At least one; its parts are empty where nothing was said.
std::vector<Host> list_hosts(const std::map<std::string, std::string>& settings);

// As libpq reads it.
std::string make_conninfo(const std::map<std::string, std::string>& settings);

}  // namespace latchkey::pg
