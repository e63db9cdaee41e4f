#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/api_command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/resolve_options.hpp"
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
    const std::string error = run.as<Completed>() ? "" : plain(run.last_error, 40);
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

void print_run(std::ostream& out, const Run& run) {
  const auto* queued = run.as<Queued>();
  const auto* running = run.as<Running>();
  const auto* done = run.as<Completed>();
  const auto* failed = run.as<Failed>();
  const auto* cancelled = run.as<Cancelled>();
  print_facts(out, {{"run", to_string(run.id())},
                    {"tenant", plain(run.head->tenant)},
                    {"function", plain(run.head->function, 128)},
                    {"key", plain(run.head->key, 512)},
                    {"guard", std::string(to_string(run.head->guard))},
                    {"status", std::string(to_string(run.status()))},
                    {"attempt", fmt::format("{} of {}, generation {}, fence {}", run.attempt, run.attempts_max,
                                            run.generation, static_cast<std::uint64_t>(run.fence))},
                    {"created", plain(run.head->created_at)},
                    {"due", queued ? plain(queued->due_at) : ""},
                    {"started", running ? plain(running->started_at) : ""},
                    {"lease until", running ? plain(running->lease_until) : ""},
                    {"cancel", running && running->cancel_requested ? "requested" : ""},
                    {"settled", run.is_settled() ? plain(run.settled_at()) : ""},
                    {"code", failed      ? failed->code
                             : cancelled ? cancelled->code
                                         : ""},
                    {"effect", std::string(failed      ? to_string(failed->effect)
                                           : cancelled ? to_string(cancelled->effect)
                                                       : "")},
                    {"error", done ? "" : plain(run.last_error, 1000)},
                    {"caller", plain(run.head->caller, 200)},
                    {"result", done ? plain(done->result, 2000) : ""}});
}

Result<void> show(std::ostream& out, const Result<Run>& run, const IdOptions& options) {
  if (!run) return std::unexpected(run.error());
  if (options.json) {
    out << wire::to_json(*run, wire::Payloads::all) << '\n';
  } else {
    print_run(out, *run);
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

void add_run_resolve(CLI::App& runs, const CliContext& context) {
  auto resolve = std::make_shared<ResolveOptions>();
  CLI::App* const command =
      add_id_command(runs, "resolve", "Resolve a run in doubt", context,
                     [resolve, &out = context.out](RunApi& api, Uuid id, const IdOptions& options) -> Result<void> {
                       if (!resolve->note.empty() && resolve->outcome != "failed")
                         return fail(Code::USAGE, "`--note` is allowed only with `--outcome failed`");
                       auto move = make_move(*resolve);
                       if (!move) return std::unexpected(move.error());
                       return show(out, api.move_run(id, *std::move(move)), options);
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
  runs->footer("Examples:\n  latchkey runs list --status running\n  latchkey runs show ID");
  std::ostream& out = context.out;
  add_list(*runs, context);
  add_id_command(
      *runs, "show", "Show one run with its input and result", context,
      [&out](RunApi& api, Uuid id, const IdOptions& options) { return show(out, api.find_run(id), options); });
  add_id_command(*runs, "cancel", "Cancel a run; the owner of a running run gets the request with its next heartbeat",
                 context, [&out](RunApi& api, Uuid id, const IdOptions& options) {
                   return show(out, api.move_run(id, CancelByHand{}), options);
                 });
  add_run_retry(*runs, context);
  add_run_resolve(*runs, context);
  add_runs_watch(*runs, context);
}

}  // namespace latchkey
