// A host's addresses, looked up beside the thread that asks. libpq looks them up itself, and everything else on its
// thread stands still until DNS has answered.
#pragma once

#include <string>

#include "base/task.hpp"
#include "base/time.hpp"
#include "store/postgres/connection.hpp"

namespace latchkey::pg {

// The same with the addresses that its one host has now; as it was, where it names none, or names it by an address or a
// socket's folder. The name stays: TLS checks it. Throws Failure, also when it takes longer than that.
Task<std::string> look_up(SocketWaiters& waits, std::string conninfo, Duration limit);

}  // namespace latchkey::pg
