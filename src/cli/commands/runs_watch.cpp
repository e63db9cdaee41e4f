#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <map>
#include <ostream>

#include "cli/api_command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/shared_options.hpp"
#include "cli/terminal/table.hpp"
#include "wire/run_json.hpp"

namespace latchkey {
namespace {

constexpr int kPollMs = 300;
constexpr std::uint32_t kOpenPage = 500;

// The fields of which a change prints the run again.
struct Seen {
  Status status;
  std::uint32_t attempt;
  std::uint32_t generation;
  bool operator==(const Seen&) const = default;
};

Instant since(const Run& run) {
  if (const auto* running = run.as<Running>()) return running->started_at;
  if (const auto* doubt = run.as<InDoubt>()) return doubt->since;
  return run.head->created_at;
}

class Watch {
 public:
  Watch(RunApi& api, const IdOptions& options, const CliContext& context)
      : api_(api), options_(options), out_(context.out), status_(context.err, context.status) {}

  // Prints the run at each change until it is settled. Returns the settled run.
  Result<Run> follow(RunId id) {
    for (;;) {
      auto run = api_.find_run(id);
      if (!run) return run;
      print_if_changed(*run);
      if (run->is_settled()) return run;
      status_.show(fmt::format("latchkey: {} since {}", to_string(run->status()), plain(since(*run))));
      ::poll(nullptr, 0, kPollMs);
    }
  }

  // Prints all open runs at each change until no run is open.
  Result<void> follow_all() {
    for (;;) {
      auto open = list_open();
      if (!open) return std::unexpected(open.error());
      for (const auto& [id, run] : *open) print_if_changed(run);
      if (auto ended = print_ended(*open); !ended) return ended;
      if (open->empty()) return {};
      status_.show(fmt::format("latchkey: {} open", open->size()));
      ::poll(nullptr, 0, kPollMs);
    }
  }

 private:
  Result<std::map<RunId, Run>> list_open() {
    std::map<RunId, Run> open;
    for (const Status status : {Status::queued, Status::running, Status::in_doubt}) {
      ListQuery query{
          .tenant = options_.connection.tenant, .status = status, .limit = kOpenPage, .with_payloads = false};
      do {
        auto page = api_.list_runs(query);
        if (!page) return std::unexpected(page.error());
        for (Run& run : page->runs) open.insert_or_assign(run.id(), std::move(run));
        query.cursor = page->next;
      } while (!query.cursor.empty());
    }
    return open;
  }

  // Prints the runs that were open at the last poll and are not open now.
  Result<void> print_ended(const std::map<RunId, Run>& open) {
    for (auto at = seen_.begin(); at != seen_.end();) {
      const RunId id = at->first;
      if (open.contains(id)) {
        ++at;
        continue;
      }
      const auto run = api_.find_run(id);
      if (!run && run.error().code != Code::NOT_FOUND) return std::unexpected(run.error());
      if (run) print_if_changed(*run);
      at = run && !run->is_settled() ? std::next(at) : seen_.erase(at);
    }
    return {};
  }

  void print_if_changed(const Run& run) {
    const Seen now{run.status(), run.attempt, run.generation};
    const auto [at, is_new] = seen_.try_emplace(run.id(), now);
    if (!is_new && std::exchange(at->second, now) == now) return;
    status_.clear();
    if (options_.json) {
      out_ << wire::to_json(run, wire::Payloads::none) << '\n' << std::flush;
      return;
    }
    out_ << fmt::format("{}  {:<9}  try {}/{}  {} {}{}\n", to_string(run.id()), to_string(run.status()), run.attempt,
                        run.attempts_max, plain(run.head->function, 24), plain(run.head->key, 40),
                        run.as<Completed>() || run.last_error.empty() ? "" : ": " + plain(run.last_error, 60))
         << std::flush;
  }

  RunApi& api_;
  const IdOptions& options_;
  std::ostream& out_;
  StatusLine status_;
  std::map<RunId, Seen> seen_;
};

void watch(const IdOptions& options, const CliContext& context) {
  const auto id = parse_id(options.id);
  if (!id && !options.id.empty()) return context.report(id.error());
  const auto api = open_api(options.connection, context);
  if (!api) return context.report(api.error());
  Watch watch(**api, options, context);
  if (options.id.empty()) {
    const auto done = watch.follow_all();
    return done ? context.set_exit(0) : context.report(done.error());
  }
  const auto run = watch.follow(*id);
  if (!run) return context.report(run.error());
  context.set_exit(run->as<Completed>() ? 0 : EXIT_REFUSED);
}

}  // namespace

void add_runs_watch(CLI::App& runs, const CliContext& context) {
  auto options = std::make_shared<IdOptions>();
  CLI::App* const command = runs.add_subcommand(
      "watch", "Print a line for each change until the run is settled; exits 1 unless it completed");
  command->add_option("ID", options->id, "The run to watch (default: all open runs, until none is left)");
  add_json(*command, options->json, "Print runs as JSON, one per line");
  add_connection_options(*command, options->connection);
  command->footer(
      "Examples:\n  latchkey runs watch\n  latchkey runs watch --json 0198f0a1-7c2e-7000-8000-00005be78b16");
  command->callback([options, &context] { watch(*options, context); });
}

}  // namespace latchkey
