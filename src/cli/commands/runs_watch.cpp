#include "cli/commands/runs_watch.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <map>
#include <ostream>

#include "cli/listing.hpp"
#include "cli/open_desk.hpp"
#include "cli/terminal/table.hpp"
#include "wire/run_json.hpp"

namespace latchkey {
namespace {

constexpr int kLookAgainMs = 300;
constexpr std::uint32_t kOpenPage = 500;

struct WatchOptions {
  ConnectionOptions place;
  std::string id;
  bool json = false;
};

// What is printed anew when it changes.
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
  Watch(OperatorClient& desk, const WatchOptions& options, const CliContext& context)
      : desk_(desk), options_(options), out_(context.out), status_(context.err, context.status) {}

  // The run as it was settled.
  Result<Run> follow(RunId id) {
    for (;;) {
      auto run = desk_.find_run(id);
      if (!run) return run;
      print_if_changed(*run);
      if (run->is_settled()) return run;
      status_.show(fmt::format("latchkey: {} since {}", to_string(run->status()), plain(since(*run))));
      ::poll(nullptr, 0, kLookAgainMs);
    }
  }

  // Until no run is open.
  Result<void> follow_all() {
    for (;;) {
      auto open = list_open();
      if (!open) return std::unexpected(open.error());
      for (const auto& [id, run] : *open) print_if_changed(run);
      if (auto ended = print_ended(*open); !ended) return ended;
      if (open->empty()) return {};
      status_.show(fmt::format("latchkey: {} open", open->size()));
      ::poll(nullptr, 0, kLookAgainMs);
    }
  }

 private:
  Result<std::map<RunId, Run>> list_open() {
    std::map<RunId, Run> open;
    for (const Status status : {Status::queued, Status::running, Status::in_doubt}) {
      ListQuery query{.tenant = options_.place.tenant, .status = status, .limit = kOpenPage, .with_payloads = false};
      do {
        auto page = desk_.list_runs(query);
        if (!page) return std::unexpected(page.error());
        for (Run& run : page->runs) open.insert_or_assign(run.id(), std::move(run));
        query.cursor = page->next;
      } while (!query.cursor.empty());
    }
    return open;
  }

  // Those that were open at the last look.
  Result<void> print_ended(const std::map<RunId, Run>& open) {
    for (auto at = seen_.begin(); at != seen_.end();) {
      const RunId id = at->first;
      if (open.contains(id)) {
        ++at;
        continue;
      }
      const auto run = desk_.find_run(id);
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

  OperatorClient& desk_;
  const WatchOptions& options_;
  std::ostream& out_;
  StatusLine status_;
  std::map<RunId, Seen> seen_;
};

void watch(const WatchOptions& options, const CliContext& context) {
  const auto id = options.id.empty() ? std::optional<Uuid>() : parse_uuid(options.id);
  if (!id && !options.id.empty())
    return context.report({Code::USAGE, "`" + options.id + "` is not an id; lists show them"});
  const auto desk = open_desk(options.place, context);
  if (!desk) return context.report(desk.error());
  Watch watch(**desk, options, context);
  if (!id) {
    const auto done = watch.follow_all();
    return done ? context.set_exit(0) : context.report(done.error());
  }
  const auto run = watch.follow(*id);
  if (!run) return context.report(run.error());
  context.set_exit(run->as<Completed>() ? 0 : EXIT_REFUSED);
}

}  // namespace

void add_runs_watch(CLI::App& runs, const CliContext& context) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* const command =
      runs.add_subcommand("watch", "A line for each change, until settled; exits 1 unless completed");
  command->add_option("ID", options->id, "One run (default: all that are open, until none is)");
  command->add_flag("--json", options->json, "Print runs as JSON, one a line");
  add_place_options(*command, options->place);
  command->footer(
      "Examples:\n  latchkey runs watch\n  latchkey runs watch --json 0198f0a1-7c2e-7000-8000-00005be78b16");
  command->callback([options, &context] { watch(*options, context); });
}

}  // namespace latchkey
