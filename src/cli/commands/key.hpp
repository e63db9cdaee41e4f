// `latchkey key`: computes keys as the server would, from flags or JSON on stdin. Needs no server and no configuration.
//
//   latchkey key lock         the lock key of a function's run
//   latchkey key entity       the entity hash of a JSON object
//   latchkey key canonical    canonical JSON (RFC 8785)
//   latchkey key fingerprint  its SHA-256
//   latchkey key cache        the key of a cached result
//
// Each prints one line on `out`. A failure prints `latchkey: CODE: detail` on `err` and nothing on `out`; the exit
// status is then 2 when the flags are wrong and 65 when the JSON is.
#pragma once

#include <functional>
#include <iosfwd>

#include "base/clock.hpp"
#include "cli/cli_fwd.hpp"
#include "cli/exit_codes.hpp"

namespace latchkey {

// What the command uses of the process it runs in; must outlive the App.
struct KeyCommandContext {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Clock& clock;                       // for --at left out
  std::function<void(int)> set_exit;  // called once per run, with 0 on success
};

// Adds the subcommand `key`. It runs inside app.parse(), as CLI11 callbacks do; what CLI11 itself refuses is the
// caller's.
void add_key_command(CLI::App& app, KeyCommandContext context);

}  // namespace latchkey
