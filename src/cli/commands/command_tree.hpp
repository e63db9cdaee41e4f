// The tree of commands as a list, for texts that are generated from it: shell completions and the manual page.
#pragma once

#include <string>
#include <vector>

#include "cli/cli_fwd.hpp"

namespace latchkey {

struct CommandNode {
  std::string path;  // "latchkey runs list"
  const CLI::App* app;
};

// The App itself and every command below it, each before its own subcommands.
std::vector<CommandNode> list_commands(const CLI::App& app);

}  // namespace latchkey
