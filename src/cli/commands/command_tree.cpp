#include "cli/commands/command_tree.hpp"

#include <CLI/CLI.hpp>

namespace latchkey {
namespace {

void collect(const CLI::App& app, const std::string& path, std::vector<CommandNode>& nodes) {
  nodes.push_back({path, &app});
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    collect(*below, path + " " + below->get_name(), nodes);
}

}  // namespace

std::vector<CommandNode> list_commands(const CLI::App& app) {
  std::vector<CommandNode> nodes;
  collect(app, "latchkey", nodes);
  return nodes;
}

}  // namespace latchkey
