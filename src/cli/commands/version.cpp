#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/commands/commands.hpp"

namespace latchkey {

void add_version_command(CLI::App& app, const CliContext& context) {
  CLI::App* const version = app.add_subcommand("version", "Print the version");
  version->footer("Example:\n  latchkey version");
  version->callback([&context] {
    context.out << "latchkey " LATCHKEY_VERSION "\n" << std::flush;
    context.set_exit(0);
  });
}

}  // namespace latchkey
