#include "cli/shared_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>

#include "base/time.hpp"
#include "cli/terminal/table.hpp"

namespace latchkey {

std::string read_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

void add_data_dir(CLI::App& command, std::string& data_dir, const std::string& description) {
  data_dir = default_data_dir();
  command.add_option("--data-dir", data_dir, description)->envname("LATCHKEY_DATA_DIR")->capture_default_str();
}

void add_server_options(CLI::App& command, ConnectionOptions& connection) {
  connection.store = read_variable("LATCHKEY_STORE");
  add_data_dir(command, connection.data_dir);
  command.add_option("--server", connection.server, "Use this server, http://host:port, instead of the embedded store")
      ->envname("LATCHKEY_SERVER");
  command.add_option("--token", connection.token, "Token for the server (default: DATA_DIR/admin.key)")
      ->envname("LATCHKEY_TOKEN");
}

void add_connection_options(CLI::App& command, ConnectionOptions& connection) {
  add_server_options(command, connection);
  command.add_option("--tenant", connection.tenant, "Tenant")->envname("LATCHKEY_TENANT");
}

void add_json(CLI::App& command, bool& json, const std::string& description) {
  command.add_flag("--json", json, description);
}

void add_retention(CLI::App& command, Retention& retention) {
  add_duration(command, "--retention", retention.done, "How long completed and cancelled runs are stored (default: 7d)")
      ->envname("LATCHKEY_RETENTION");
  add_duration(command, "--failed-retention", retention.failed, "How long failed runs are stored (default: 30d)")
      ->envname("LATCHKEY_FAILED_RETENTION");
}

CLI::Option* add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& into,
                          const std::string& description) {
  const auto read = [name, &into](const std::string& text) {
    const Result<Duration> span = parse_duration(text);
    if (!span) throw CLI::ValidationError(name, span.error().detail);
    into = *span;
  };
  return command.add_option_function<std::string>(name, read, description)->type_name("SPAN");
}

CLI::Option* add_number(CLI::App& command, const std::string& name, std::int64_t& into, std::int64_t least,
                        const std::string& description) {
  const auto read = [name, least, &into](const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, into);
    if (fault == std::errc{} && at == end && into >= least) return;
    throw CLI::ValidationError(name, fmt::format("`{}` is no whole number from {} on", plain(text, 40), least));
  };
  return command.add_option_function<std::string>(name, read, description)->type_name("NUMBER");
}

}  // namespace latchkey
