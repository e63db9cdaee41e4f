#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/commands/command_tree.hpp"
#include "cli/commands/commands.hpp"

namespace latchkey {
namespace {

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(below->get_name());
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

// The values of an option with a fixed set of them. CLI11 describes such an option as "TEXT:{once,while-running}".
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), end = type.find('}');
  if (open == type.npos || end == type.npos) return "";
  std::string values = type.substr(open + 1, end - open - 1);
  std::ranges::replace(values, ',', ' ');
  return values;
}

// The cases for `latchkey run --guard` and the like: the values that may follow.
std::string write_values(const CommandNode& node) {
  std::string cases;
  for (const CLI::Option* option : node.app->get_options())
    for (const std::string& name : option->get_lnames())
      if (const std::string values = values_of(*option); !values.empty())
        cases += fmt::format("    '{} --{}') words='{}' ;;\n", node.path, name, values);
  return cases;
}

// The script for bash, and for zsh with its bash compatibility. The longest known path of commands selects the words
// that may follow.
std::string write_bash(const CLI::App& app) {
  std::string cases, values;
  for (const CommandNode& node : list_commands(app)) values += write_values(node);
  for (const CommandNode& node : list_commands(app))
    cases += fmt::format("    '{}') words='{}' ;;\n", node.path, fmt::join(words_of(*node.app), " "));
  return fmt::format(R"(_latchkey() {{
  local path=latchkey word words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    [[ $word == -- ]] && {{ compopt -o default 2>/dev/null; COMPREPLY=(); return; }}
    [[ $word == [a-z]* && $i -le 2 ]] && path+=" $word"
  done
  case "$path ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}    *)
  case $path in
{}    *) words= ;;
  esac
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _latchkey latchkey
)",
                     values, cases);
}

std::string escape_fish(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string write_fish_values(const CLI::Option& option) {
  const std::string values = values_of(option);
  return values.empty() ? "" : " -x -a '" + values + "'";
}

std::string write_fish(const CLI::App& app) {
  std::string lines = "complete -c latchkey -f\n";
  for (const CommandNode& node : list_commands(app)) {
    const std::string names = node.path.substr(std::string("latchkey").size());
    std::string condition = names.empty() ? "__fish_use_subcommand" : "";
    for (std::size_t at = 0; at < names.size();) {
      const std::size_t end = std::min(names.find(' ', at + 1), names.size());
      condition +=
          fmt::format("{}__fish_seen_subcommand_from{}", condition.empty() ? "" : "; and ", names.substr(at, end - at));
      at = end;
    }
    for (const CLI::App* below : node.app->get_subcommands([](const CLI::App*) { return true; }))
      lines += fmt::format("complete -c latchkey -n '{}' -a '{}' -d '{}'\n", condition, below->get_name(),
                           escape_fish(below->get_description()));
    for (const CLI::Option* option : node.app->get_options())
      for (const std::string& name : option->get_lnames())
        lines += fmt::format("complete -c latchkey -n '{}' -l '{}' -d '{}'{}\n", condition, name,
                             escape_fish(option->get_description()), write_fish_values(*option));
  }
  return lines;
}

}  // namespace

void add_completion_command(CLI::App& app, const CliContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* const completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(R"(Examples:
  source <(latchkey completion bash)
  latchkey completion zsh > ~/.zsh/latchkey.zsh    (and source it from .zshrc)
  latchkey completion fish > ~/.config/fish/completions/latchkey.fish)");
  completion->callback([shell, &app, &context] {
    if (*shell == "zsh") context.out << "autoload -U +X bashcompinit && bashcompinit\n";
    context.out << (*shell == "fish" ? write_fish(app) : write_bash(app)) << std::flush;
    context.set_exit(0);
  });
}

}  // namespace latchkey
