// The whole command line: every command on one App, and how its errors are told.
#pragma once

#include <string>
#include <vector>

#include "cli/cli_fwd.hpp"
#include "cli/context.hpp"

namespace latchkey {

// Adds every command. The context must outlive the App.
void add_commands(CLI::App& app, const CliContext& context);

// Parses and runs; `arguments` without the program's name. What was wrong is said as `latchkey: USAGE: …`, with the
// nearest name where one is near. The exit code goes to context.set_exit.
void run_command_line(CLI::App& app, const std::vector<std::string>& arguments, const CliContext& context);

}  // namespace latchkey
