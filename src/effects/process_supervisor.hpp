// ProcessSupervisor: a small process between a holder and its command, so that nothing of the command outlives the
// holder.
//
//   holder ── socket ──▶ keeper ──▶ command ──▶ whatever it starts
//
// The keeper is a subreaper: what the command starts stays below it, daemons with a session of their own included.
// - The holder dies, however it dies: the socket ends and the keeper kills everything below it.
// - The keeper dies: the command has a parent-death signal, SIGKILL.
// - The command ends: the keeper says how, and waits to be told whether what it left behind may live on.
// All three stay in the holder's process group and session, so that the terminal (Ctrl-C, Ctrl-Z, reading) treats them
// as one.
//
// It cannot: kill what runs under another user (setuid programs also lose the parent-death signal); find anything but
// the command itself where /proc is not mounted; help when holder and keeper are killed in the same instant (then only
// the command dies).
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace latchkey {

// How processes that a command starts should find their signals: as they were before the holder changed its own.
struct SignalState {
  sigset_t mask{};
  bool pipe_ignored = false;
  bool file_size_ignored = false;
};
SignalState read_signal_state();

struct SupervisorMessage {
  enum Kind : std::int32_t {
    // from the keeper
    exited,       // value: exit status
    signalled,    // value: signal
    not_started,  // value: errno of exec
    // from the holder
    pass_signal,  // to the command alone
    signal_all,   // to the command and everything below it
    kill_rest,    // kills what is left and ends
    leave_rest,   // ends; what is left lives on
  };
  Kind kind;
  std::int32_t value;
};

// What the holder has of a started command. The descriptors are the caller's to close; closing `socket` kills it all.
struct SupervisedProcess {
  pid_t keeper = -1;
  int socket = -1;
  int output = -1;  // the command's stdout
  int errors = -1;  // the command's stderr
};

// Starts argv[0], looked for in PATH, no shell. `environment` is whole, as NAME=value. INTERNAL when
// the machine is out of processes or descriptors.
Result<SupervisedProcess> start_supervised(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                               const SignalState& signals);

}  // namespace latchkey
