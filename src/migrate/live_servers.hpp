// Which servers are at work on a database.
#pragma once

#include <string>
#include <vector>

namespace latchkey::migrate {

// By what PostgreSQL calls their sessions (`latchkey PID@HOST` unless the URL says otherwise) and, where this role may
// see it, their address. Looks for about three seconds: so long they wait with
// looking for others' deadlines, and with nothing else (behind a pooler that has no connection to spare: with all).
// Throws MigrationError.
std::vector<std::string> find_live_servers(const std::string& url);

}  // namespace latchkey::migrate
