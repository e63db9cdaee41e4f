// serve: what `latchkey serve` does.
#pragma once

#include <ostream>

#include "server/settings.hpp"

namespace latchkey {

// Serves until SIGINT, SIGTERM or, unless it is ignored, SIGHUP, then stops gracefully; a second signal ends the
// process at once (exit code 130, 143 or 129). While it starts, the first one ends the process, with 0. Says on `out`
// where things are, and logs to stderr. The error is what kept it from starting: see Service::start. Blocks those
// signals in the calling thread and those it starts: call it from the only one.
Result<void> serve(ServeSettings settings, std::ostream& out);

}  // namespace latchkey
