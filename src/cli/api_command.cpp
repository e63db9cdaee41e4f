#include "cli/api_command.hpp"

#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/shared_options.hpp"
#include "client/api_client.hpp"
#include "client/embedded_api.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {
namespace {

// As long as `run` waits for the store.
constexpr Duration kOwnerPatience = std::chrono::seconds{10};
constexpr int kLookAgainMs = 50;
constexpr std::size_t kShortIdMin = 4;
constexpr std::uint32_t kIdPage = 500;
constexpr int kIdPages = 20;

// Nothing was done: the server that owned the store is stopping, or another one is starting.
bool is_owner_changing(const RunApi& api, Code code) {
  if (dynamic_cast<const ApiClient*>(&api) == nullptr) return code == Code::STORE_LOCKED;
  return code == Code::SERVER_UNREACHABLE || code == Code::SHUTTING_DOWN;
}

bool is_part_of_id(std::string_view text) {
  return text.size() >= kShortIdMin && text.size() < 36 &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

}  // namespace

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
  const Duration until = context.clock.elapsed() + kOwnerPatience;
  Result<void> done;
  for (;;) {
    const auto api = open_api(connection, context);
    if (!api) return context.report(api.error());
    done = work(**api);
    if (done || !connection.server.empty() || !is_owner_changing(**api, done.error().code)) break;
    if (context.clock.elapsed() >= until) break;
    ::poll(nullptr, 0, kLookAgainMs);
  }
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
  const bool short_ids = parent.get_name() == "runs";
  command
      ->add_option("ID", options->id,
                   short_ids ? "Id, as lists show it, or the beginning or end of it" : "Id, as lists show it")
      ->required();
  add_json(*command, options->json);
  add_connection_options(*command, options->connection);
  command->footer("Example:\n  latchkey " + parent.get_name() + " " + name + " 0198f0a1-7c2e-7000-8000-00005be78b16");
  command->callback([options, work, short_ids, &context] {
    if (const auto known = parse_id(options->id); !known && !(short_ids && is_part_of_id(options->id)))
      return context.report(known.error());
    call_api(options->connection, context, [&](RunApi& api) -> Result<void> {
      const auto id = short_ids ? find_id(api, options->connection.tenant, options->id) : parse_id(options->id);
      if (!id) return std::unexpected(id.error());
      return work(api, *id, *options);
    });
  });
  return command;
}

Result<Uuid> find_id(RunApi& api, const std::optional<std::string>& tenant, const std::string& text) {
  if (const auto id = parse_uuid(text)) return *id;
  if (!is_part_of_id(text)) return parse_id(text);
  ListQuery query{.tenant = tenant, .limit = kIdPage, .with_payloads = false};
  std::optional<Uuid> found;
  for (int pages = 0; pages < kIdPages; ++pages) {
    const auto page = api.list_runs(query);
    if (!page) return std::unexpected(page.error());
    for (const Run& run : page->runs) {
      const std::string id = to_string(run.id());
      if (!id.starts_with(text) && !id.ends_with(text)) continue;
      if (found && *found != run.id())
        return fail(Code::USAGE, "several runs match `" + text + "`, such as " + to_string(*found) + " and " + id);
      found = run.id();
    }
    query.cursor = page->next;
    if (query.cursor.empty()) break;
  }
  if (found) return *found;
  return fail(Code::NOT_FOUND, "no id of the latest runs begins or ends with `" + text + "`");
}

Result<Uuid> parse_id(const std::string& text) {
  if (const auto id = parse_uuid(text)) return *id;
  return fail(Code::USAGE, "`" + text + "` is not an id; lists show the ids");
}

}  // namespace latchkey
