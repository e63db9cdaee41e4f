#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <mutex>
#include <ostream>

#include "base/hex.hpp"
#include "cli/commands/commands.hpp"
#include "cli/shared_options.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/table.hpp"
#include "pg/dsn.hpp"
#include "server/address_file.hpp"
#include "server/settings.hpp"
#include "transfer/transfer_store.hpp"
#include "wire/json_out.hpp"

namespace latchkey {
namespace {

using namespace transfer;
using wire::ObjectOut;

struct MoveOptions {
  std::string from;
  std::string store;  // LATCHKEY_STORE
  std::string data_dir;
  std::string to;
  bool copy_only = false;
  bool unmark = false;
  bool yes = false;
  bool json = false;
};

// A count with its title for people and its name in JSON.
struct Named {
  std::string title;
  std::string name;
  std::uint64_t value;
};
std::vector<Named> name_counts(const Counts& counts) {
  std::vector<Named> named;
  for (std::size_t i = 0; i < counts.runs.size(); ++i) {
    const std::string status(to_string(static_cast<Status>(i)));
    named.push_back({"runs " + status, "runs_" + status, counts.runs.at(i)});
  }
  named.insert(named.end(), {{"keys", "keys", counts.keys},
                             {"waits", "waits", counts.waits},
                             {"suppressed repeats", "suppressed_repeats", counts.duplicates},
                             {"dead letters", "dead_letters", counts.dead_letters},
                             {"their members", "dead_letter_members", counts.members},
                             {"their steps", "dead_letter_steps", counts.steps},
                             {"tokens", "tokens", counts.tokens}});
  return named;
}

void append_summary(std::string& text, const Summary& summary) {
  ObjectOut object(text);
  for (const Named& one : name_counts(summary.counts)) object.number(one.name, static_cast<std::int64_t>(one.value));
  object.word("sha256", to_hex(summary.hash));
  object.end();
}

std::string to_json(const TransferReport& report, const std::string& file) {
  std::string text;
  ObjectOut object(text);
  object.text("from", file).text("to", report.address).flag("verified", true).flag("copied", report.target.has_value());
  object.flag("marked", report.is_file_closed);
  append_summary(object.member("source"), report.source);
  if (report.target)
    append_summary(object.member("target"), *report.target);
  else
    object.raw("target", "null");
  object.number("own_tables_left", static_cast<std::int64_t>(report.not_moved.size()));
  object.end();
  return text;
}

void print_tables(std::ostream& out, const Summary& source, const Summary& target) {
  Table table({"", "SQLITE", "POSTGRESQL"});
  const auto here = name_counts(source.counts), there = name_counts(target.counts);
  for (std::size_t i = 0; i < here.size(); ++i)
    table.add({here[i].title, std::to_string(here[i].value), std::to_string(there[i].value)});
  table.print(out);
  out << "sha256 of the SQLite store      " << to_hex(source.hash) << '\n';
  out << "sha256 of the PostgreSQL store  " << to_hex(target.hash) << '\n';
}

void print(std::ostream& out, const TransferReport& report, const std::string& file) {
  if (report.target) {
    print_tables(out, report.source, *report.target);
    out << fmt::format("verified: {} runs are in {} as they were in {}\n", report.source.counts.all_runs(),
                       report.address, file);
  } else {
    out << fmt::format("{} has this copy already, verified when it was made: {} runs, sha256 {}\n", report.address,
                       report.source.counts.all_runs(), to_hex(report.source.hash));
  }
  for (const std::string& table : report.not_moved)
    out << fmt::format("not moved: {}, a table of your own\n", plain(table));
  out << (report.is_file_closed
              ? file +
                    " is marked as moved and cannot be opened any more; continue with `latchkey serve "
                    "--store postgres://…`\n"
              : file + " is not marked: later changes in it are not in the copy\n");
}

std::string find_file(const MoveOptions& options) {
  if (options.from.empty()) return find_store_file(options.store, options.data_dir);
  return options.from.starts_with("sqlite:") ? options.from.substr(7) : "";
}

// The fault of LATCHKEY_STORE, which is used if --from is missing.
std::optional<Error> find_fault_of_store(const MoveOptions& options) {
  if (!options.from.empty()) return std::nullopt;
  if (options.store.empty() && options.data_dir.empty())
    return Error{Code::USAGE, "name the store: --from sqlite:FILE or --data-dir DIR"};
  if (pg::names_postgres(options.store))
    return Error{Code::USAGE,
                 "LATCHKEY_STORE names PostgreSQL, but only a file can be moved: name --from sqlite:FILE (or unset "
                 "LATCHKEY_STORE to move the data folder's)"};
  if (options.store.empty()) return std::nullopt;
  if (const auto good = check_store(options.store); !good)
    return Error{Code::USAGE, "LATCHKEY_STORE: " + good.error().detail};
  return std::nullopt;
}

std::optional<Error> find_fault(const MoveOptions& options) {
  if (auto fault = find_fault_of_store(options)) return fault;
  if (find_file(options).empty()) return Error{Code::USAGE, "--from is sqlite:FILE"};
  if (options.unmark && !options.yes)
    return Error{Code::USAGE,
                 "--unmark opens " + find_file(options) +
                     " again, and what was or will be done in its copy on PostgreSQL is then done a second time; if "
                     "nothing has used the copy and nothing will, add --yes"};
  if (options.unmark) return std::nullopt;
  if (options.to.starts_with("sqlite:"))
    return Error{Code::USAGE, "a store is moved into PostgreSQL only: --to is postgres://…, not sqlite:FILE"};
  if (!pg::names_postgres(options.to))
    return Error{Code::USAGE, "name the database as a URL: --to postgres://…, or LATCHKEY_DATABASE"};
  return std::nullopt;
}

void report(const Error& error, const CliContext& context) {
  // A server that uses the file or the database is no failure: the operator stops it and retries.
  context.report(error, error.code == Code::STORE_LOCKED ? EXIT_BUSY : exit_code_of(error.code));
}

void unmark(const std::string& file, const CliContext& context) {
  // Commands with this folder must use the file again, and not a server on the copy.
  if (const std::filesystem::path path = std::filesystem::absolute(file); path.filename() == "latchkey.db")
    if (const auto removed = ServerAddressFile::remove(path.parent_path()); !removed)
      return report(removed.error(), context);
  const auto unmarked = reopen_file(file, context.clock, context.random);
  if (!unmarked) return report(unmarked.error(), context);
  context.out << file << (*unmarked ? " is open again; do not use the copy\n" : " has no mark\n");
  context.set_exit(0);
}

// Shows the progress of a move, and reports the state of both stores when a signal interrupts it.
class MoveProgress {
 public:
  MoveProgress(const MoveOptions& options, const CliContext& context)
      : options_(options),
        context_(context),
        status_(context.err, context.status),
        signals_([this](int signal) { interrupt(signal); }) {}

  void show(TransferPhase doing, std::uint64_t runs) {
    const std::lock_guard lock(mutex_);
    commits_ = doing == TransferPhase::committing;
    if (!commits_)
      status_.show(fmt::format("{} {} runs", doing == TransferPhase::copying ? "copied" : "verifying", runs));
  }

 private:
  // The mutex is never unlocked, so the reported state stays true until the process ends.
  void interrupt(int signal) {
    const std::lock_guard lock(mutex_);
    status_.clear();
    context_.err << "latchkey: interrupted" + describe_rest() + "\n" << std::flush;
    InterruptWatch::die_of(signal);
  }
  std::string describe_rest() const {
    const std::string file = find_file(options_);
    if (!commits_) return ": nothing was copied; " + file + " is the store as before";
    if (options_.copy_only)
      return " at the commit: whether the copy is stored is not known; " + file + " is the store as before";
    return " at the commit: " + file + " stays closed until the move is run again, which finds the copy or makes it";
  }

  const MoveOptions& options_;
  const CliContext& context_;
  std::mutex mutex_;
  StatusLine status_;
  bool commits_ = false;
  InterruptWatch signals_;  // last: its thread uses the members above
};

void move(const MoveOptions& options, const CliContext& context) {
  if (const auto fault = find_fault(options)) return context.report(*fault);
  const std::string file = find_file(options);
  if (options.unmark) return unmark(file, context);
  const auto moved = [&] {
    MoveProgress progress(options, context);
    return transfer_store({.file = file,
                           .url = options.to,
                           .leaves_file_in_use = options.copy_only,
                           .on_progress = [&](TransferPhase doing, std::uint64_t runs) { progress.show(doing, runs); }},
                          context.clock, context.random);
  }();
  if (!moved) return report(moved.error(), context);
  if (options.json)
    context.out << to_json(*moved, file) << '\n';
  else
    print(context.out, *moved, file);
  context.set_exit(0);
}

}  // namespace

void add_move_command(CLI::App& app, const CliContext& context) {
  auto options = std::make_shared<MoveOptions>();
  options->store = read_variable("LATCHKEY_STORE");
  CLI::App* const command = app.add_subcommand("move", "Copy an embedded store into PostgreSQL, verified");
  command->add_option("--from", options->from,
                      "The store, sqlite:FILE (default: LATCHKEY_STORE, else latchkey.db in the data folder)");
  add_data_dir(*command, options->data_dir);
  command->add_option("--to", options->to, "postgres://…, an empty database or one that Latchkey has set up")
      ->envname("LATCHKEY_DATABASE");
  CLI::Option* const copy_only =
      command->add_flag("--keep", options->copy_only, "Copy only: the file stays in use, and is not marked as moved");
  command->add_flag("--unmark", options->unmark, "Use a moved file again; its copy must not be used")
      ->excludes(copy_only);
  command->add_flag("--yes", options->yes, "With --unmark: confirms that nothing has used the copy and nothing will");
  add_json(*command, options->json);
  command->footer(R"(Stop the server first. Ids, keys, fences, leases, dead letters and tokens do not change.
Examples:
  latchkey move --to postgres://latchkey@db/latchkey
  latchkey move --from sqlite:/srv/latchkey.db --to postgres://latchkey@db/latchkey --json
  latchkey move --unmark --yes --data-dir /var/lib/latchkey)");
  command->callback([options, &context] { move(*options, context); });
}

}  // namespace latchkey
