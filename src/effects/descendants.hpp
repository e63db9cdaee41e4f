// Descendants: all processes below the calling process, found in /proc. Safe in a fork of a process with threads: no
// allocation, no locks.
#pragma once

namespace latchkey {

// Sends the signal to each. Returns the number of processes that received it and have not ended; 0 without /proc.
int signal_descendants(int signal);

}  // namespace latchkey
