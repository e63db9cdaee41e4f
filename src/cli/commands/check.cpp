#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "cli/commands/commands.hpp"
#include "config/checklist.hpp"
#include "config/config_file.hpp"
#include "config/function_settings.hpp"

namespace latchkey {
namespace {

struct CheckOptions {
  std::string config = "latchkey.yaml";
  bool print_schema = false;
};

void print_checklist(std::ostream& out, const FunctionDefinition& function) {
  const config::Checklist list = config::make_checklist(function);
  out << fmt::format("{}: safe to run twice: {}, {}\n", function.name, list.idempotent, list.reason);
  for (const config::ChecklistItem& item : list.items)
    out << fmt::format("  [{}] {:<12}{}\n", item.is_met ? 'x' : ' ', item.name, item.text);
}

void check(const CheckOptions& options, const CliContext& context) {
  if (options.print_schema) {
    context.out << config::write_config_schema() << "\n" << std::flush;
    return context.set_exit(0);
  }
  const auto text = config::read_text_file(options.config);
  if (!text) return context.report(text.error());
  std::vector<config::Fault> faults;
  const config::ConfigFile file = config::parse_config(*text, options.config, faults);
  for (const config::Fault& fault : faults) context.err << describe(fault, options.config) << "\n";
  if (!faults.empty()) {
    context.err << fmt::format("{}: {} {}\n", options.config, faults.size(), faults.size() == 1 ? "fault" : "faults");
    return context.set_exit(EXIT_BAD_DATA);
  }
  const std::size_t count = file.functions ? file.functions->size() : 0;
  for (std::size_t i = 0; i < count; ++i) print_checklist(context.out, file.functions->at(i));
  context.out << fmt::format("{}: no fault, {} {}\n", options.config, count, count == 1 ? "function" : "functions")
              << std::flush;
  context.set_exit(0);
}

}  // namespace

void add_check_command(CLI::App& app, const CliContext& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* const command =
      app.add_subcommand("check", "Report every fault of a config file, and a checklist per function");
  command->add_option("--config", options->config, "The config file")
      ->envname("LATCHKEY_CONFIG")
      ->capture_default_str();
  command->add_flag("--print-schema", options->print_schema, "Print the JSON Schema of config files");
  command->footer(
      "Exit codes: 0 without faults, 65 with faults, 2 when the file cannot be read.\n\n"
      "Examples:\n  latchkey check\n  latchkey check --config /etc/latchkey.yaml\n"
      "  latchkey check --print-schema > latchkey.schema.json");
  command->callback([options, &context] { check(*options, context); });
}

}  // namespace latchkey
