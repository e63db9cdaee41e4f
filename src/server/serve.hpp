// serve: what `latchkey serve` does.
#pragma once

#include <ostream>

#include "server/settings.hpp"

namespace latchkey {

// Serves until SIGINT or SIGTERM, then stops gracefully; a second signal ends the process at once (exit code 130 or
// 143). Says on `out` where things are. Exit codes: 0 stopped, 75 another process owns the store, 1 anything else that
// kept it from starting, which is said on stderr. Blocks those signals in the calling thread and those it starts: call
// it from the only one.
int serve(ServeSettings settings, std::ostream& out);

}  // namespace latchkey
