// Finds the servers that run on a database.
#pragma once

#include <string>
#include <vector>

namespace latchkey::migrate {

// Returns the application names of their connections (`latchkey PID@HOST` by default) and, if this role may read it,
// their address. The search takes about three seconds. Meanwhile the servers' polls for deadlines wait, but no other
// work does (behind a pooler without a spare connection: all work). Throws MigrationError.
std::vector<std::string> find_live_servers(const std::string& url);

}  // namespace latchkey::migrate
