#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/suggest.hpp"
#include "cli/commands/commands.hpp"

namespace latchkey {
namespace {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> names_of_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string with_suggestion(std::string message, std::string_view name, const std::vector<std::string>& known) {
  if (const auto nearest = find_nearest(name, known)) message += fmt::format("; did you mean `{}`?", *nearest);
  return message;
}

// The error of an unknown command name. CLI11 would only report that a subcommand is missing.
std::optional<std::string> find_unknown_command(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* at = &app;
  for (const std::string& argument : arguments) {
    const auto known = names_of_commands(*at);
    if (known.empty() || argument.starts_with('-')) return std::nullopt;
    if (std::ranges::find(known, argument) == known.end())
      return with_suggestion(fmt::format("there is no command `{}`", argument), argument, known);
    at = at->get_subcommand(argument);
  }
  return std::nullopt;
}

// The command at which parsing stopped.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.back());
}

std::string path_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? "latchkey" : path_of(*parent) + " " + app.get_name();
}

std::string describe(const CLI::ParseError& error, const CLI::App& app, const CliContext& context) {
  const CLI::App& at = innermost(app);
  const auto rest = app.remaining(true);
  // A mistyped flag is reported first: a required flag may be missing only because of it.
  const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  const bool is_missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (!is_extra && !(is_missing && !rest.empty() && rest.front().starts_with('-'))) return error.what();
  const std::string first = rest.empty() ? "" : rest.front();
  const std::string name = first.substr(0, first.find('='));
  if (name.starts_with('-'))
    return with_suggestion(fmt::format("`{}` has no flag `{}`", path_of(at), name), name, names_of_flags(at));
  const bool misplaced = at.get_name() == "run" && !context.has_dashes;
  return fmt::format("`{}` does not take `{}`{}", path_of(at), first, misplaced ? "; put the command behind `--`" : "");
}

}  // namespace

void add_commands(CLI::App& app, const CliContext& context) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "latchkey " LATCHKEY_VERSION, "Print the version");
  app.set_help_all_flag("--help-all", "Print the help of all commands");
  app.footer(R"(Examples:
  latchkey run --key backup:2026-02-06 -- ./backup.sh    runs once; a repeat prints the stored output
  latchkey dlq list                                      runs that failed permanently
  latchkey runs list --status running                    runs in progress
  latchkey serve                                         serves the HTTP API on 127.0.0.1:7420
  latchkey run --help                                    the flags of a command)");
#define LATCHKEY_ADD(name) add_##name##_command(app, context);
  LATCHKEY_COMMANDS(LATCHKEY_ADD)
#undef LATCHKEY_ADD
}

void run_command_line(CLI::App& app, const std::vector<std::string>& arguments, const CliContext& context) {
  if (!arguments.empty() && arguments.front() == "help") {  // `latchkey help runs list`
    std::vector<std::string> asked(arguments.begin() + 1, arguments.end());
    asked.emplace_back("--help");
    return run_command_line(app, asked, context);
  }
  if (const auto unknown = find_unknown_command(app, arguments)) return context.report({Code::USAGE, *unknown});
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked, context.out, context.err);
    context.set_exit(0);
  } catch (const CLI::ParseError& error) {
    context.report(
        {Code::USAGE, describe(error, app, context) + fmt::format(" (see {} --help)", path_of(innermost(app)))});
  }
}

}  // namespace latchkey
