#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/api_command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/resolve_options.hpp"
#include "cli/terminal/run_details.hpp"
#include "cli/terminal/table.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey {
namespace {

struct RunsOptions : ListOptions {
  std::string function;
  std::string status;
  std::string key;
  std::string since;
};

// A time, or a span before now: 2026-02-06T10:00:00Z, 24h.
Result<Instant> read_since(const std::string& text, Clock& clock) {
  if (const auto span = parse_duration(text)) return clock.now() - *span;
  if (const auto at = parse_rfc3339(text)) return *at;
  return fail(Code::USAGE, "`--since` is a time such as 2026-02-06T10:00:00Z or a span such as 24h");
}

Result<ListQuery> make_query(const RunsOptions& options, Clock& clock) {
  ListQuery query{.tenant = options.connection.tenant, .function = options.function, .key = options.key};
  query.cursor = options.cursor;
  query.limit = options.limit;
  query.with_payloads = false;
  if (!options.status.empty()) query.status = parse_status(options.status);
  if (options.since.empty()) return query;
  const auto since = read_since(options.since, clock);
  if (!since) return std::unexpected(since.error());
  query.since = *since;
  return query;
}

void print_runs(std::ostream& out, const Page& page) {
  Table table({"RUN", "TENANT", "FUNCTION", "KEY", "STATUS", "TRY", "CREATED", "ERROR"});
  for (const Run& run : page.runs) {
    const std::string code = run.as<Failed>() ? code_of(run) + ": " : "";
    const std::string error = run.as<Completed>() ? "" : plain(code + first_line(run.last_error), 60);
    table.add({to_string(run.id()), plain(run.head->tenant, 20), plain(run.head->function, 24),
               plain(run.head->key, 40), std::string(to_string(run.status())),
               fmt::format("{}/{}", run.attempt, run.attempts_max), plain(run.head->created_at), error});
  }
  if (table.empty()) {
    out << "no runs\n";
  } else {
    table.print(out);
  }
  if (!page.next.empty()) out << "more: --cursor " << page.next << '\n';
}

Result<void> show(std::ostream& out, const Result<Run>& run, const IdOptions& options) {
  if (!run) return std::unexpected(run.error());
  if (options.json) {
    out << wire::to_json(*run, wire::Payloads::all) << '\n';
  } else {
    print_run(out, *run, options.connection.flags());
  }
  return {};
}

Result<void> list(const RunsOptions& options, const CliContext& context, RunApi& api) {
  const auto query = make_query(options, context.clock);
  if (!query) return std::unexpected(query.error());
  const auto page = find_page(api, *query);
  if (!page) return std::unexpected(page.error());
  if (!options.json) {
    print_runs(context.out, *page);
    return {};
  }
  context.out << wire::write_page(page->runs, page->next, [](std::string& text, const Run& run) {
    wire::append_run(text, run, wire::Payloads::none);
  }) << '\n';
  return {};
}

void add_list(CLI::App& runs, const CliContext& context) {
  auto options = std::make_shared<RunsOptions>();
  CLI::App* const command = runs.add_subcommand("list", "List runs, newest first");
  command->add_option("--function", options->function, "Only of this function");
  command->add_option("--status", options->status, "Only in this state")
      ->check(CLI::IsMember({"queued", "running", "in_doubt", "completed", "failed", "cancelled"}));
  command->add_option("--key", options->key, "Only with exactly this key");
  command->add_option("--since", options->since, "Only created since this time, or in this span such as 24h");
  add_list_options(*command, *options);
  command->footer(
      "Examples:\n  latchkey runs list --status failed --since 24h\n  latchkey runs list --key backup:2026-02-06 "
      "--json");
  set_api_work(*command, options, context, [options, &context](RunApi& api) { return list(*options, context, api); });
}

struct ShowOptions : IdOptions {
  std::string key;
  std::string function = "run";
};

// The newest run of the key.
Result<Run> find_by_key(const ShowOptions& options, RunApi& api) {
  ListQuery query{.tenant = options.connection.tenant, .function = options.function, .key = options.key};
  query.limit = 1;
  query.with_payloads = false;
  const auto page = find_page(api, query);
  if (!page) return std::unexpected(page.error());
  if (page->runs.empty())
    return fail(Code::NOT_FOUND,
                fmt::format("the key `{}` has no run in the function `{}`", plain(options.key, 200), options.function));
  return api.find_run(page->runs.front().id());
}

void add_show(CLI::App& runs, const CliContext& context) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* const command = runs.add_subcommand("show", "Show one run with its output, by its id or its key");
  CLI::Option* const id = command->add_option("ID", options->id, "Id, as lists show it, or the beginning or end of it");
  command->add_option("--key", options->key, "The newest run of this key instead")->excludes(id);
  command->add_option("--function", options->function, "With --key: the key's function")->capture_default_str();
  add_json(*command, options->json);
  add_connection_options(*command, options->connection);
  command->footer(
      "Examples:\n  latchkey runs show --key backup:2026-02-06\n"
      "  latchkey runs show 0198f0a1-7c2e-7000-8000-00005be78b16\n  latchkey runs show 5be78b16");
  command->callback([options, &context] {
    if (options->id.empty() && options->key.empty())
      return context.report({Code::USAGE, "name a run: its ID, or --key KEY (see latchkey runs show --help)"});
    call_api(options->connection, context, [&](RunApi& api) -> Result<void> {
      if (!options->key.empty()) return show(context.out, find_by_key(*options, api), *options);
      const auto id = find_id(api, options->connection.tenant, options->id);
      if (!id) return std::unexpected(id.error());
      return show(context.out, api.find_run(*id), *options);
    });
  });
}

void add_run_retry(CLI::App& runs, const CliContext& context) {
  auto retry = std::make_shared<RetryByHand>();
  CLI::App* const command =
      add_id_command(runs, "retry", "Open a failed run again; the next call of its key runs the command", context,
                     [retry, &out = context.out](RunApi& api, Uuid id, const IdOptions& options) {
                       return show(out, api.move_run(id, *retry), options);
                     });
  command->add_flag("--fresh-effect-key", retry->fresh_effect_key,
                    "Use a new effect key: the receiving system treats it as another request");
}

// A call with `hold` is refused for a failed run, too, if its effect may have happened. To run it again is a retry
// then.
Result<Run> resolve_run(RunApi& api, RunId id, Move move) {
  const bool reruns = std::holds_alternative<ResolveRerun>(move);
  auto resolved = api.move_run(id, std::move(move));
  if (resolved || !reruns || resolved.error().code != Code::MOVE_REFUSED) return resolved;
  const auto run = api.find_run(id);
  return run && run->as<Failed>() ? api.move_run(id, RetryByHand{}) : resolved;
}

void add_run_resolve(CLI::App& runs, const CliContext& context) {
  auto resolve = std::make_shared<ResolveOptions>();
  CLI::App* const command =
      add_id_command(runs, "resolve", "Resolve a run in doubt", context,
                     [resolve, &out = context.out](RunApi& api, Uuid id, const IdOptions& options) -> Result<void> {
                       if (!resolve->note.empty() && resolve->outcome != "failed")
                         return fail(Code::USAGE, "`--note` is allowed only with `--outcome failed`");
                       auto move = make_move(*resolve);
                       if (!move) return std::unexpected(move.error());
                       return show(out, resolve_run(api, id, *std::move(move)), options);
                     });
  add_resolve_options(*command, *resolve,
                      {.outcomes = {"completed", "failed", "rerun"},
                       .outcome = "completed: the effect happened; failed: it did not; rerun: run it again",
                       .note = "Reason for the dead letter, with `--outcome failed`"});
  command->footer(
      "Examples:\n  latchkey runs resolve ID --outcome completed --result '{\"sent\":true}'\n"
      "  latchkey runs resolve ID --outcome failed --note 'the bank never saw it'\n"
      "  latchkey runs resolve ID --outcome rerun");
}

}  // namespace

void add_runs_command(CLI::App& app, const CliContext& context) {
  CLI::App* const runs = app.add_subcommand("runs", "List, show, watch, cancel, retry or resolve runs");
  runs->require_subcommand(1);
  runs->footer(
      "Examples:\n  latchkey runs list --status running\n  latchkey runs show ID\n  latchkey runs show --key "
      "backup:2026-02-06");
  std::ostream& out = context.out;
  add_list(*runs, context);
  add_show(*runs, context);
  add_id_command(*runs, "cancel", "Cancel a run; the owner of a running run gets the request within 2 s", context,
                 [&out](RunApi& api, Uuid id, const IdOptions& options) {
                   return show(out, api.move_run(id, CancelByHand{}), options);
                 });
  add_run_retry(*runs, context);
  add_run_resolve(*runs, context);
  add_runs_watch(*runs, context);
}

}  // namespace latchkey
