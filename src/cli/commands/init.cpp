#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>

#include "cli/commands/commands.hpp"
#include "config/sample.hpp"

namespace latchkey {
namespace {

namespace fs = std::filesystem;

// Creates the file; never overwrites one.
Result<void> create_file(const fs::path& path, std::string_view text, fs::perms mode) {
  std::FILE* const file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr)
    return fail(errno == EEXIST ? Code::USAGE : Code::OUTPUT_FAILED,
                errno == EEXIST ? path.string() + " exists already; nothing was written"
                                : "cannot create " + path.string() + ": " + std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  std::error_code error;
  fs::permissions(path, mode, error);
  if (written && closed && !error) return {};
  return fail(Code::OUTPUT_FAILED, "cannot write " + path.string());
}

void init(const std::string& folder, const CliContext& context) {
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path config = fs::path(folder) / "latchkey.yaml", command = fs::path(folder) / "hello.sh";
  // Both are checked first, so that a refusal leaves no file behind.
  for (const fs::path& path : {config, command})
    if (fs::exists(path, error))
      return context.report({Code::USAGE, path.string() + " exists already; nothing was written"});
  if (auto made = create_file(config, config::kSampleConfig, fs::perms(0644)); !made)
    return context.report(made.error());
  if (auto made = create_file(command, config::kSampleCommand, fs::perms(0755)); !made)
    return context.report(made.error());
  context.out << fmt::format("wrote {} and {}\nnext: latchkey check --config {}\n", config.string(), command.string(),
                             config.string())
              << std::flush;
  context.set_exit(0);
}

}  // namespace

void add_init_command(CLI::App& app, const CliContext& context) {
  auto folder = std::make_shared<std::string>(".");
  CLI::App* const command = app.add_subcommand("init", "Write a commented latchkey.yaml and a sample function");
  command->add_option("DIR", *folder, "The folder")->capture_default_str();
  command->footer("Never overwrites a file.\n\nExamples:\n  latchkey init\n  latchkey init shop");
  command->callback([folder, &context] { init(*folder, context); });
}

}  // namespace latchkey
