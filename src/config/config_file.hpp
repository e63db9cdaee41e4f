// ConfigFile: a latchkey.yaml, read and checked as a whole. Pure; read_config_file() also reads the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "config/document.hpp"
#include "config/members.hpp"
#include "model/function.hpp"

namespace latchkey::config {

// Members that belong to one server. Each has a flag of `serve` with the same name; a flag or a variable wins.
struct ServerMembers {
  std::string store;
  std::string listen;
  std::string data_dir;
  std::optional<Duration> retention, failed_retention;
  std::vector<std::string> cors_origins;
  bool insecure_listen = false;
  std::string log;        // text | json
  std::string log_level;  // debug | info | warn | error
};

// The slots of this server's workers: how many calls and commands run at once.
struct WorkerSettings {
  std::uint32_t http = 256;
  std::uint32_t command = 4;
  Duration drain = std::chrono::seconds{30};
  bool off = false;  // a server that only answers
};

struct ConfigFile {
  std::string file;    // as it was named
  std::string folder;  // relative paths of the file start here
  ServerMembers server;
  WorkerSettings workers;
  // None: the file lacks the member, and that part of the store stays as it is.
  std::optional<std::vector<FunctionDefinition>> functions;
};

// Reads the text. Adds every fault; the config may be used only when no fault was added.
ConfigFile parse_config(std::string_view text, const std::string& file, std::vector<Fault>& faults);
// INVALID_ARGUMENT with every fault as file:line:column, one per line; USAGE when the file cannot be read.
Result<ConfigFile> read_config_file(const std::string& file);
Result<std::string> read_text_file(const std::string& file);

// Describes all members of a config file.
void describe(Members& members, ConfigFile& config);
// The JSON Schema of a config file, for editors.
std::string write_config_schema();

}  // namespace latchkey::config
