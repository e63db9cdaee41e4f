// The commands of latchkey, in the order in which `latchkey --help` lists them.
//
// To add a command, write commands/NAME.cpp, which defines add_NAME_command(), and add COMMAND(NAME) to the list. The
// function adds one subcommand to the App; it and its callback may use the context until the process ends. Options that
// commands share are in cli/shared_options.hpp; a command that calls a store or a server begins with
// cli/api_command.hpp.
#pragma once

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

#define LATCHKEY_COMMANDS(COMMAND) \
  COMMAND(init)                    \
  COMMAND(run)                     \
  COMMAND(serve)                   \
  COMMAND(check)                   \
  COMMAND(runs)                    \
  COMMAND(dlq)                     \
  COMMAND(token)                   \
  COMMAND(migrate)                 \
  COMMAND(move)                    \
  COMMAND(key)                     \
  COMMAND(completion)              \
  COMMAND(man)                     \
  COMMAND(version)

namespace latchkey {

#define LATCHKEY_DECLARE(name) void add_##name##_command(CLI::App& app, const CliContext& context);
LATCHKEY_COMMANDS(LATCHKEY_DECLARE)
#undef LATCHKEY_DECLARE

// `latchkey runs watch`, which `runs` adds to itself.
void add_runs_watch(CLI::App& runs, const CliContext& context);

}  // namespace latchkey
