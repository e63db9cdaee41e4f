// Descendants: all processes below the calling one, by /proc. Safe in a fork of a process with threads: no allocation,
// no locks.
#pragma once

namespace latchkey {

// Sends the signal to each; gives how many could be sent it and have not ended. 0 where /proc is not mounted.
int signal_descendants(int signal);

}  // namespace latchkey
