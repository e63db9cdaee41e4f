// Commands that call a RunApi: how the API is opened, and the options of lists and of commands about one thing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/cli_fwd.hpp"
#include "cli/connection_options.hpp"
#include "cli/context.hpp"
#include "client/run_api.hpp"

namespace latchkey {

struct ApiOptions {
  ConnectionOptions connection;
  bool json = false;
};
struct ListOptions : ApiOptions {
  std::uint32_t limit = 50;
  std::string cursor;
};
struct IdOptions : ApiOptions {
  std::string id;
};

// Opens the named server, or the server that owns the store; else the embedded store.
Result<std::unique_ptr<RunApi>> open_api(const ConnectionOptions& connection, const CliContext& context);

// Opens the API and calls `work`. Reports its error; without an error the exit code is 0.
using ApiWork = std::function<Result<void>(RunApi&)>;
void call_api(const ConnectionOptions& connection, const CliContext& context, const ApiWork& work);
// Makes call_api() the callback of the command.
void set_api_work(CLI::App& command, std::shared_ptr<const ApiOptions> options, const CliContext& context,
                  ApiWork work);

// --limit, --cursor, --json and the connection options.
void add_list_options(CLI::App& command, ListOptions& options);

// Adds a command about one thing, with the argument ID, --json and the connection options.
using IdWork = std::function<Result<void>(RunApi&, Uuid, const IdOptions&)>;
CLI::App* add_id_command(CLI::App& parent, const std::string& name, const std::string& description,
                         const CliContext& context, const IdWork& work);

// Parses an id of the command line. USAGE when it is malformed.
Result<Uuid> parse_id(const std::string& text);

}  // namespace latchkey
