// `latchkey run`: makes any command run once under a key. Needs no server.
//
// Exit codes: the command's own when it ran (128 + n for signal n, 126, 127); 0 for a repeat of one that was done;
// 75 the key is busy or the lease was lost; 76 the outcome of an earlier try is unknown and held; 65 KEY_REUSED
// (--strict); 69 store or server cannot be reached; 2 usage; 128 + n when latchkey itself was told to end.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

void add_run_command(CLI::App& app, const CliContext& context);

}  // namespace latchkey
