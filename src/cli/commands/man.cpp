#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/commands/command_tree.hpp"
#include "cli/commands/commands.hpp"

namespace latchkey {
namespace {

std::string escape_roff(std::string_view text) {
  std::string out;
  bool line_starts = true;
  for (const char c : text) {
    if (line_starts && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') out += "\\e";
    if (c == '-') out += "\\-";
    if (c != '\\' && c != '-') out += c;
    line_starts = c == '\n';
  }
  return out;
}

std::string write_man_command(const CommandNode& node) {
  std::string out = fmt::format(".SS \"{}\"\n{}\n", escape_roff(node.path), escape_roff(node.app->get_description()));
  for (const CLI::Option* option : node.app->get_options())
    out += fmt::format(".TP\n.B {}\n{}\n", escape_roff(option->get_name(false, true)),
                       escape_roff(option->get_description()));
  const std::string footer = node.app->get_footer();
  if (!footer.empty()) out += fmt::format(".PP\n.nf\n{}\n.fi\n", escape_roff(footer));
  return out;
}

std::string write_man(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH LATCHKEY 1 \"\" \"latchkey {}\" \"User Commands\"\n.SH NAME\nlatchkey \\- makes things happen once\n"
      ".SH SYNOPSIS\n.B latchkey\n.I COMMAND\n[OPTIONS]\n.br\n.B latchkey run \\-\\-key\n.I KEY\n[OPTIONS] \\-\\-\n"
      ".I COMMAND\n.SH COMMANDS\n",
      LATCHKEY_VERSION);
  for (const CommandNode& node : list_commands(app)) out += write_man_command(node);
  return out;
}

}  // namespace

void add_man_command(CLI::App& app, const CliContext& context) {
  CLI::App* const man = app.add_subcommand("man", "Print the man page");
  man->footer("Example:\n  latchkey man | man -l -");
  man->callback([&app, &context] {
    context.out << write_man(app) << std::flush;
    context.set_exit(0);
  });
}

}  // namespace latchkey
