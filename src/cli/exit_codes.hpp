// Exit codes of every command. `latchkey run` also exits with its command's own code.
#pragma once

#include "base/error.hpp"

namespace latchkey {

inline constexpr int EXIT_REFUSED = 1;           // there is no such thing, or its state does not allow it
inline constexpr int EXIT_USAGE = 2;             // the command line is wrong
inline constexpr int EXIT_PENDING = 3;           // `migrate status --exit-code`: not all is applied as it stands here
inline constexpr int EXIT_BAD_DATA = 65;         // JSON or files that cannot be used; KEY_REUSED
inline constexpr int EXIT_UNAVAILABLE = 69;      // the store or the server cannot be reached, or is full
inline constexpr int EXIT_INTERNAL = 70;         // a fault of Latchkey's
inline constexpr int EXIT_OUTPUT = 74;           // it was done, but its output could not be written
inline constexpr int EXIT_BUSY = 75;             // the key is held, or its lease was lost: try again later
inline constexpr int EXIT_IN_DOUBT = 76;         // the outcome is unknown: a person decides
inline constexpr int EXIT_NOT_ALLOWED = 77;      // token or role
inline constexpr int EXIT_NOT_EXECUTABLE = 126;  // as shells say it
inline constexpr int EXIT_NOT_FOUND = 127;

// What an operating error means for whoever called the command.
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
