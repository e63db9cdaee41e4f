// latchkey: the one binary.
#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/command_line.hpp"

namespace {

// The process may have been started without stdin, stdout or stderr. The first opened files must not become them.
void open_missing_streams() {
  for (int file = 0; file <= 2; ++file)
    if (::fcntl(file, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != file) _exit(latchkey::EXIT_INTERNAL);
}

}  // namespace

int main(int count, char** values) {
  open_missing_streams();
  spdlog::set_default_logger(spdlog::stderr_logger_mt("latchkey"));  // stdout is for the output of commands
  spdlog::set_level(spdlog::level::critical);                        // a command reports its own errors; serve logs
  const std::vector<std::string> all(values + std::min(count, 1), values + count);
  const auto dashes = std::ranges::find(all, "--");
  const std::vector<std::string> arguments(all.begin(), dashes);

  int exit = 0;
  latchkey::SystemClock clock;
  latchkey::SystemRandom random;
  latchkey::CliContext context{.in = std::cin,
                               .out = std::cout,
                               .err = std::cerr,
                               .clock = clock,
                               .random = random,
                               .behind_dashes = {},
                               .has_dashes = dashes != all.end(),
                               .set_exit = [&exit](int code) { exit = code; },
                               .status = latchkey::StatusLine::find()};
  if (context.has_dashes) context.behind_dashes.assign(dashes + 1, all.end());
  CLI::App app("Latchkey makes things happen once", "latchkey");
  latchkey::add_commands(app, context);
  latchkey::run_command_line(app, arguments, context);
  // A script must not mistake a truncated output for the complete one.
  if (!std::cout.flush() && exit == 0) context.report({latchkey::Code::OUTPUT_FAILED, "stdout cannot be written"});
  return exit;
}
