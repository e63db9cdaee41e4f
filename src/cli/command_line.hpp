// The whole command line: all commands on one App, and the report of its errors.
#pragma once

#include <string>
#include <vector>

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

// Adds every command. The context must outlive the App.
void add_commands(CLI::App& app, const CliContext& context);

// Parses the arguments (without the program's name) and runs the command. A usage error is reported as
// `latchkey: USAGE: …`, with the nearest known name if there is one. The exit code goes to context.set_exit.
void run_command_line(CLI::App& app, const std::vector<std::string>& arguments, const CliContext& context);

}  // namespace latchkey
