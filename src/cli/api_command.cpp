#include "cli/api_command.hpp"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/shared_options.hpp"
#include "client/api_client.hpp"
#include "client/embedded_api.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {

Result<std::unique_ptr<RunApi>> open_api(const ConnectionOptions& connection, const CliContext& context) {
  const auto found = connection.find_server();
  if (!found) return std::unexpected(found.error());
  std::string address = *found;
  if (address.empty()) address = StoreLock::find_server(connection.store_file()).value_or("");
  if (address.empty())
    return std::make_unique<EmbeddedApi>(
        EmbeddedApiSettings{.file = connection.store_file(), .login = connection.login()}, context.clock,
        context.random);
  auto server = ApiClient::at(address, connection.login(), context.clock);
  if (!server) return std::unexpected(server.error());
  return std::make_unique<ApiClient>(*std::move(server));
}

void call_api(const ConnectionOptions& connection, const CliContext& context, const ApiWork& work) {
  ::signal(SIGXFSZ, SIG_IGN);  // at the maximum file size the store is full, as on a full disk
  const auto api = open_api(connection, context);
  if (!api) return context.report(api.error());
  const auto done = work(**api);
  if (!done) return context.report(done.error());
  context.out << std::flush;
  context.set_exit(0);
}

void set_api_work(CLI::App& command, std::shared_ptr<const ApiOptions> options, const CliContext& context,
                  ApiWork work) {
  command.callback([options = std::move(options), work = std::move(work), &context] {
    call_api(options->connection, context, work);
  });
}

void add_list_options(CLI::App& command, ListOptions& options) {
  command.add_option("--limit", options.limit, "Maximum number of items")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  command.add_option("--cursor", options.cursor, "Continue after a page, with its `next`");
  add_json(command, options.json, "Print {items, next} as JSON");
  add_connection_options(command, options.connection);
}

CLI::App* add_id_command(CLI::App& parent, const std::string& name, const std::string& description,
                         const CliContext& context, const IdWork& work) {
  auto options = std::make_shared<IdOptions>();
  CLI::App* const command = parent.add_subcommand(name, description);
  command->add_option("ID", options->id, "Id, as lists show it")->required();
  add_json(*command, options->json);
  add_connection_options(*command, options->connection);
  command->footer("Example:\n  latchkey " + parent.get_name() + " " + name + " 0198f0a1-7c2e-7000-8000-00005be78b16");
  command->callback([options, work, &context] {
    const auto id = parse_id(options->id);
    if (!id) return context.report(id.error());
    call_api(options->connection, context, [&](RunApi& api) { return work(api, *id, *options); });
  });
  return command;
}

Result<Uuid> parse_id(const std::string& text) {
  if (const auto id = parse_uuid(text)) return *id;
  return fail(Code::USAGE, "`" + text + "` is not an id; lists show the ids");
}

}  // namespace latchkey
