// ProcessSupervisor: a small process between Latchkey (the parent) and a command. When the parent dies, the command and
// its descendants are killed.
//
//   parent ── socket ──▶ supervisor ──▶ command ──▶ its descendants
//
// The supervisor is a subreaper: the command's descendants stay below it, including daemons with their own session.
// - When the parent dies, the socket closes and the supervisor kills all processes below it.
// - When the supervisor dies, the command is killed by its parent-death signal, SIGKILL.
// - When the command ends, the supervisor reports how. The parent replies whether the remaining descendants may live
// on. All processes stay in the parent's process group and session, so that the terminal (Ctrl-C, Ctrl-Z, reading)
// treats them as one.
//
// Limits: it cannot kill processes of another user (setuid programs also lose the parent-death signal). Without /proc
// it finds only the command itself. If parent and supervisor are killed at the same instant, only the command dies.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace latchkey {

// The signal settings for a command: those of the parent before it changed its own.
struct SignalState {
  sigset_t mask{};
  bool pipe_ignored = false;
  bool file_size_ignored = false;
};
SignalState read_signal_state();

struct SupervisorMessage {
  enum Kind : std::int32_t {
    // from the supervisor
    exited,       // value: exit status
    signalled,    // value: signal
    not_started,  // value: errno of exec
    // from the parent
    pass_signal,  // value: signal, to the command only
    signal_all,   // value: signal, to the command and its descendants
    kill_rest,    // kills the remaining descendants and exits
    leave_rest,   // exits; the remaining descendants live on
  };
  Kind kind;
  std::int32_t value;
};

// A started command. The caller closes the descriptors; closing `socket` kills the command and its descendants.
struct SupervisedProcess {
  pid_t supervisor = -1;
  int socket = -1;
  int output = -1;  // the command's stdout
  int errors = -1;  // the command's stderr
};

// Starts argv[0], searched in PATH, without a shell. `environment` is the whole environment, as NAME=value. INTERNAL
// when the machine is out of processes or descriptors.
Result<SupervisedProcess> start_supervised(const std::vector<std::string>& arguments,
                                           const std::vector<std::string>& environment, const SignalState& signals);

}  // namespace latchkey
