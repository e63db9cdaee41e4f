// Resolves a host name on a thread of its own. libpq would resolve it on the caller's thread and block everything else
// there until DNS replies.
#pragma once

#include <string>

#include "base/task.hpp"
#include "base/time.hpp"
#include "pg/socket_waiters.hpp"

namespace latchkey::pg {

// Returns the connection string with the host's addresses added. Unchanged if it names no host, an address or a socket
// folder. The host name stays in it, because TLS verifies it. Throws Failure, also after `limit`.
Task<std::string> resolve_host(SocketWaiters& waiters, std::string conninfo, Duration limit);

}  // namespace latchkey::pg
