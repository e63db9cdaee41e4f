// serve: the command `latchkey serve`.
#pragma once

#include <ostream>

#include "server/settings.hpp"

namespace latchkey {

// Serves until SIGINT, SIGTERM or, unless it is ignored, SIGHUP, and then stops gracefully. A second signal ends the
// process at once (exit code 130, 143 or 129). During startup the first signal ends the process with exit code 0.
// Prints a banner with addresses and files to `out`, and logs to stderr. Returns the error that prevented the start:
// see Service::start. The signals are blocked in the calling thread and in the threads it starts, so this must be
// called while the process has one thread.
Result<void> serve(ServeSettings settings, std::ostream& out);

}  // namespace latchkey
