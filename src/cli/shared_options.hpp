// The options that several commands have, so that a flag has one name, one variable and one meaning in all of them.
// Each function adds its options to a command; the target must outlive the App.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/cli_fwd.hpp"
#include "cli/connection_options.hpp"
#include "model/decide.hpp"

namespace latchkey {

// --data-dir, or LATCHKEY_DATA_DIR; else the default folder.
void add_data_dir(CLI::App& command, std::string& data_dir,
                  const std::string& description = "Folder of the embedded store");
// --data-dir, --server and --token, or LATCHKEY_DATA_DIR, LATCHKEY_SERVER and LATCHKEY_TOKEN. Also reads
// LATCHKEY_STORE.
void add_server_options(CLI::App& command, ConnectionOptions& connection);
// The same with --tenant, or LATCHKEY_TENANT.
void add_connection_options(CLI::App& command, ConnectionOptions& connection);

// --json.
void add_json(CLI::App& command, bool& json, const std::string& description = "Print JSON");

// --retention and --failed-retention, or LATCHKEY_RETENTION and LATCHKEY_FAILED_RETENTION.
void add_retention(CLI::App& command, Retention& retention);

// An option whose value is a duration such as 90s. Another value is a usage error.
CLI::Option* add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& into,
                          const std::string& description);
// An option whose value is a whole number of at least `least`. CLI11's own check would report the range of doubles.
CLI::Option* add_number(CLI::App& command, const std::string& name, std::int64_t& into, std::int64_t least,
                        const std::string& description);

// The value of an environment variable; empty when it is not set.
std::string read_variable(const char* name);

}  // namespace latchkey
