// CliContext: the streams, clock and settings of the process, for the commands. Must outlive the App. One thread at a
// time.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "cli/exit_codes.hpp"
#include "cli/terminal/status_line.hpp"

namespace latchkey {

struct CliContext {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Clock& clock;
  Random& random;
  std::vector<std::string> behind_dashes;  // the arguments behind the first `--`
  bool has_dashes = false;
  std::function<void(int)> set_exit;                // called once per run, with 0 on success
  StatusLine::On status = StatusLine::On::nothing;  // where long work shows its progress

  // Prints `latchkey: CODE: detail` and sets the exit code of the error, or the given one.
  void report(const Error& error) const { report(error, exit_code_of(error.code)); }
  void report(const Error& error, int exit) const;
};

}  // namespace latchkey
