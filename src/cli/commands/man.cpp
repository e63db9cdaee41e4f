#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
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

// The placeholder of an option's value; empty for flags and positional arguments.
std::string describe_value(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0 || option.get_positional()) return "";
  std::string type = option.get_type_name();
  if (const auto set = type.find(":{"); set != type.npos) type.erase(0, set + 1);  // TEXT:{once,while-running}
  if (const auto more = type.find(" - "); more != type.npos) type.erase(more);
  return escape_roff(type);
}

std::string write_man_command(const CommandNode& node) {
  std::string out = fmt::format(".SS \"{}\"\n{}\n", escape_roff(node.path), escape_roff(node.app->get_description()));
  for (const CLI::Option* option : node.app->get_options())
    out += fmt::format(".TP\n.BI \"{} \" {}\n{}\n", escape_roff(option->get_name(option->get_positional(), true)),
                       describe_value(*option), escape_roff(option->get_description()));
  const std::string footer = node.app->get_footer();
  if (!footer.empty()) out += fmt::format(".PP\n.nf\n{}\n.fi\n", escape_roff(footer));
  return out;
}

// Each variable once, with the flag that it sets.
std::string write_variables(const CLI::App& app) {
  std::map<std::string, std::string> variables{
      {"LATCHKEY_STORE", "The store, sqlite:FILE or postgres://…, as serve --store"},
      {"HOME, XDG_DATA_HOME", "They lead to the default data folder"}};
  for (const CommandNode& node : list_commands(app))
    for (const CLI::Option* option : node.app->get_options())
      if (!option->get_envname().empty())
        variables.try_emplace(option->get_envname(), option->get_name(false, true) + ": " + option->get_description());
  std::string out = ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : variables)
    out += fmt::format(".TP\n.B {}\n{}\n", escape_roff(name), escape_roff(meaning));
  return out;
}

constexpr const char* kRest = R"(.SH EXIT STATUS
.TP
.B 0
Success, in this call or an earlier one.
.TP
.B its own
run: the command's exit code; 128 + n if signal n ended it.
.TP
.B 1
Not found, or its state does not allow the action; a migration failed.
.TP
.B 2
The command line is wrong.
.TP
.B 3
migrate status \-\-exit\-code: a migration is not applied, or differs.
.TP
.B 65
Malformed JSON or files; the key was used for another command line.
.TP
.B 69
The store or the server cannot be reached, or is full; serve cannot start.
.TP
.B 70
An internal error of Latchkey.
.TP
.B 74
Success, but the output could not be written.
.TP
.B 75
Busy: the key is leased, the lease was lost, or another process owns the store.
.TP
.B 76
The outcome is unknown: an operator decides.
.TP
.B 77
The token or its role does not allow the call.
.TP
.B 126, 127
run: the command is not executable, not found.
.SH FILES
.TP
.I ~/.local/share/latchkey
The default data folder; \fB\-\-data\-dir\fR names another one.
.TP
.I latchkey.db, latchkey.db\-wal, latchkey.db.lock
In the data folder: the store, its log, and the lock with the address of the server that owns it.
.TP
.I admin.key
In the data folder: the token of the server's first administrator.
.TP
.I postgres.server
In the data folder: the address of the server on PostgreSQL that uses this folder.
)";

std::string write_man(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH LATCHKEY 1 \"\" \"latchkey {}\" \"User Commands\"\n.SH NAME\nlatchkey \\- makes things happen once\n"
      ".SH SYNOPSIS\n.B latchkey\n.I COMMAND\n[OPTIONS]\n.br\n.B latchkey run \\-\\-key\n.I KEY\n[OPTIONS] \\-\\-\n"
      ".I COMMAND\n.SH COMMANDS\n",
      LATCHKEY_VERSION);
  for (const CommandNode& node : list_commands(app)) out += write_man_command(node);
  return out + write_variables(app) + kRest;
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
