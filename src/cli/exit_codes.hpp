// The exit codes of all commands. `latchkey run` also exits with the exit code of its shell command.
#pragma once

#include "base/error.hpp"

namespace latchkey {

inline constexpr int EXIT_REFUSED = 1;           // not found, or its state does not allow the action
inline constexpr int EXIT_USAGE = 2;             // the command line is wrong
inline constexpr int EXIT_PENDING = 3;           // `migrate status --exit-code`: a migration is not applied, or differs
inline constexpr int EXIT_BAD_DATA = 65;         // malformed JSON or files; KEY_REUSED
inline constexpr int EXIT_UNAVAILABLE = 69;      // the store or the server cannot be reached, or is full
inline constexpr int EXIT_INTERNAL = 70;         // an internal error of Latchkey
inline constexpr int EXIT_OUTPUT = 74;           // success, but the output could not be written
inline constexpr int EXIT_BUSY = 75;             // the key is leased, or the lease was lost: retry later
inline constexpr int EXIT_IN_DOUBT = 76;         // the outcome is unknown: an operator decides
inline constexpr int EXIT_NOT_ALLOWED = 77;      // the token or its role does not allow the call
inline constexpr int EXIT_NOT_EXECUTABLE = 126;  // as in shells
inline constexpr int EXIT_NOT_FOUND = 127;

// The exit code of an operating error.
inline int exit_code_of(Code code) {
  switch (code) {
    case Code::NOT_FOUND:
    case Code::MOVE_REFUSED:
    case Code::ALREADY_SETTLED:
    case Code::CHECK_FAILED:
    case Code::COPY_DIFFERS:
    case Code::MIGRATION_CHANGED:
    case Code::MIGRATION_FAILED:
    case Code::MIGRATION_ORDER:
    case Code::STORE_NOT_EMPTY:
    case Code::VERIFY_FAILED:
      return EXIT_REFUSED;
    case Code::USAGE:
    case Code::INVALID_ARGUMENT:
      return EXIT_USAGE;
    case Code::INVALID_JSON:
    case Code::KEY_REUSED:
    case Code::BODY_TOO_LARGE:
    case Code::MIGRATION_INVALID:
    case Code::PLAN_INVALID:
      return EXIT_BAD_DATA;
    case Code::ALREADY_RUNNING:
    case Code::ALREADY_QUEUED:
    case Code::NOT_DUE:
    case Code::LEASE_LOST:
    case Code::MIGRATION_LOCKED:
      return EXIT_BUSY;
    case Code::OUTCOME_UNKNOWN:
      return EXIT_IN_DOUBT;
    case Code::UNAUTHENTICATED:
    case Code::FORBIDDEN:
    case Code::SCRATCH_REFUSED:
      return EXIT_NOT_ALLOWED;
    case Code::INTERNAL:
      return EXIT_INTERNAL;
    case Code::OUTPUT_FAILED:
      return EXIT_OUTPUT;
    default:
      return EXIT_UNAVAILABLE;
  }
}

}  // namespace latchkey
