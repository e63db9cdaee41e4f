// A connection string that names several hosts, as one string for each: libpq passes over a host that refuses, but not
// over one that hangs up or says nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace latchkey::pg {

struct HostUrl {
  std::string conninfo;
  Duration patience{};  // with this host
};

// In order; one when it cannot be read, as it was: libpq says why.
std::vector<HostUrl> split_hosts(const std::string& url);

// As people may see it, without the password; none where it cannot be read, or not as it was meant: a password whose
// special characters are not percent-encoded ends up in other parts, and from there in complaints.
std::optional<std::string> describe(const std::string& url);

// As libpq reads it.
std::string make_conninfo(const std::map<std::string, std::string>& settings);

}  // namespace latchkey::pg
