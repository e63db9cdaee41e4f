#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <ostream>

#include "base/utf8.hpp"
#include "cli/api_command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/resolve_options.hpp"
#include "cli/terminal/table.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"
#include "wire/run_reader.hpp"

namespace latchkey {
namespace {

struct DlqOptions : ListOptions {
  std::string function;
  bool all = false;
};

Result<void> list(const DlqOptions& options, std::ostream& out, RunApi& api) {
  const auto page = api.list_dead_letters({.tenant = options.connection.tenant,
                                           .function = options.function,
                                           .with_acknowledged = options.all,
                                           .cursor = options.cursor,
                                           .limit = options.limit});
  if (!page) return std::unexpected(page.error());
  if (options.json) {
    out << wire::write_page(page->entries, page->next, [](std::string& text, const DeadLetter& entry) {
      wire::append_dead_letter(text, entry, nullptr);
    }) << '\n';
    return {};
  }
  Table table({"DEAD LETTER", "TENANT", "FUNCTION", "COUNT", "CODE", "UPDATED", "READ", "REASON"});
  for (const DeadLetter& entry : page->entries)
    table.add({to_string(entry.id), plain(entry.tenant, 20), plain(entry.function, 24), std::to_string(entry.count),
               plain(entry.code, 32), plain(entry.updated_at), entry.acknowledged_at ? "yes" : "no",
               plain(entry.reason, 60)});
  if (table.empty()) {
    out << "no dead letters\n";
  } else {
    table.print(out);
  }
  if (!page->next.empty()) out << "more: --cursor " << page->next << '\n';
  return {};
}

void print_entry(std::ostream& out, const DeadLetter& entry) {
  print_facts(out,
              {{"dead letter", to_string(entry.id)},
               {"tenant", plain(entry.tenant)},
               {"function", plain(entry.function, 128)},
               {"code", plain(entry.code)},
               {"reason", plain(entry.reason, 1000)},
               {"count", std::to_string(entry.count)},
               {"latest run", to_string(entry.latest_run)},
               {"opened", plain(entry.opened_at)},
               {"updated", plain(entry.updated_at)},
               {"acknowledged",
                entry.acknowledged_at ? plain(*entry.acknowledged_at) + " by " + plain(entry.acknowledged_by) : ""}});
}

// "retried 2026-02-06 10:00 by ann; failed 2026-02-06 11:00 by bob: asked the bank".
std::string describe_steps(const DeadLetterMember& member) {
  std::string text;
  for (const MemberStep& step : member.steps)
    text += fmt::format("{}{} {} by {}{}{}", text.empty() ? "" : "; ", to_string(step.kind), plain(step.at),
                        plain(step.by, 40), step.note.empty() ? "" : ": ", plain(step.note, 60));
  return text;
}

Result<void> show(std::ostream& out, RunApi& api, Uuid id, const IdOptions& options) {
  const auto details = api.find_dead_letter(id);
  if (!details) return std::unexpected(details.error());
  if (options.json) {
    const wire::MembersPage all{details->members, ""};
    std::string text;
    wire::append_dead_letter(text, details->entry, &all);
    out << text << '\n';
    return {};
  }
  print_entry(out, details->entry);
  out << '\n';
  Table table({"RUN", "KEY", "CODE", "TRIES", "EFFECT", "AT", "REASON", "STEPS"});
  for (const DeadLetterMember& member : details->members)
    table.add({to_string(member.run), plain(member.key, 40), plain(member.code, 32), std::to_string(member.attempts),
               std::string(to_string(member.effect)), plain(member.at), plain(member.reason, 60),
               describe_steps(member)});
  table.print(out);
  return {};
}

// The name of the operator: the user of this process. A server derives it from the token instead.
std::string actor() {
  const char* const user = std::getenv("USER");
  return user != nullptr ? make_readable(user) : std::to_string(::getuid());
}

Result<void> acknowledge(std::ostream& out, RunApi& api, Uuid id, const IdOptions& options) {
  const auto entry = api.acknowledge(id, actor());
  if (!entry) return std::unexpected(entry.error());
  if (options.json) {
    std::string text;
    wire::append_dead_letter(text, *entry, nullptr);
    out << text << '\n';
  } else {
    print_entry(out, *entry);
  }
  return {};
}

struct MembersOptions {
  std::vector<std::string> runs;
  bool fresh_effect_key = false;
  ResolveOptions resolve;
};

Result<DeadLetterAction> make_action(const MembersOptions& options, Move move) {
  DeadLetterAction action{.runs = {}, .move = std::move(move), .note = options.resolve.note};
  for (const std::string& text : options.runs) {
    const auto run = parse_uuid(text);
    if (!run) return fail(Code::USAGE, "`--run` needs the id of a run, not " + text);
    action.runs.push_back(*run);
  }
  return action;
}

std::string to_json(const MembersMoved& moved) {
  std::string problems;
  for (const auto& [run, why] : moved.problems)
    problems +=
        fmt::format(R"({}{{"run":{},"problem":{}}})", problems.empty() ? "" : ",", wire::quote(run), wire::quote(why));
  return fmt::format(R"({{"changed":{},"unchanged":{},"refused":{},"problems":[{}]}})", moved.changed, moved.unchanged,
                     moved.refused, problems);
}

// Performs the action on each member. A refusal is an error if the run was named with --run, or if all members are
// refused.
Result<void> move_members(const CliContext& context, RunApi& api, Uuid id, const IdOptions& options,
                          const DeadLetterAction& action) {
  StatusLine status(context.err, context.status);
  const auto moved = api.move_members(id, action, actor(), [&](const MembersMoved& progress) {
    status.show(fmt::format("latchkey: {} of its runs processed, {} changed",
                            progress.changed + progress.unchanged + progress.refused, progress.changed));
  });
  status.clear();
  std::ostream& out = context.out;
  if (!moved) return std::unexpected(moved.error());
  if (options.json) {
    out << to_json(*moved) << '\n';
  } else {
    out << fmt::format("{} changed, {} unchanged, {} refused\n", moved->changed, moved->unchanged, moved->refused);
    for (const auto& [run, why] : moved->problems) out << run << "  " << why << '\n';
  }
  if (!action.runs.empty() && moved->refused > 0) return fail(Code::MOVE_REFUSED, "not every named run was changed");
  if (moved->refused > 0 && moved->changed + moved->unchanged == 0)
    return fail(Code::MOVE_REFUSED, "none of its runs was changed");
  return {};
}

void add_retry(CLI::App& dlq, const CliContext& context) {
  auto wanted = std::make_shared<MembersOptions>();
  CLI::App* const command =
      add_id_command(dlq, "retry", "Open its failed runs again; the next call of each key runs the command", context,
                     [wanted, &context](RunApi& api, Uuid id, const IdOptions& options) -> Result<void> {
                       const auto action = make_action(*wanted, RetryByHand{wanted->fresh_effect_key});
                       if (!action) return std::unexpected(action.error());
                       return move_members(context, api, id, options, *action);
                     });
  command->add_option("--run", wanted->runs, "Only this run; may be given several times")->take_all();
  command->add_flag("--fresh-effect-key", wanted->fresh_effect_key,
                    "Use a new effect key: the receiving system treats it as another request");
}

void add_resolve(CLI::App& dlq, const CliContext& context) {
  auto wanted = std::make_shared<MembersOptions>();
  CLI::App* const command =
      add_id_command(dlq, "resolve", "Resolve its failed runs as completed or failed", context,
                     [wanted, &context](RunApi& api, Uuid id, const IdOptions& options) -> Result<void> {
                       auto move = make_move(wanted->resolve);
                       if (!move) return std::unexpected(move.error());
                       const auto action = make_action(*wanted, *std::move(move));
                       if (!action) return std::unexpected(action.error());
                       return move_members(context, api, id, options, *action);
                     });
  add_resolve_options(*command, wanted->resolve,
                      {.outcomes = {"completed", "failed"},
                       .outcome = "completed: the effect happened after all; failed: the failure is final",
                       .note = "Reason, stored with the members"});
  command->add_option("--run", wanted->runs, "Only this run; may be given several times")->take_all();
}

}  // namespace

void add_dlq_command(CLI::App& app, const CliContext& context) {
  CLI::App* const dlq = app.add_subcommand("dlq", "Manage dead letters: runs that failed permanently");
  dlq->require_subcommand(1);
  dlq->footer(
      "Examples:\n  latchkey dlq list\n  latchkey dlq show ID\n  latchkey dlq acknowledge ID\n  latchkey dlq retry "
      "ID\n  latchkey dlq resolve ID --outcome completed");
  auto options = std::make_shared<DlqOptions>();
  CLI::App* const list_app = dlq->add_subcommand("list", "List dead letters, newest first");
  list_app->add_option("--function", options->function, "Only of this function");
  list_app->add_flag("--all", options->all, "Acknowledged entries, too");
  add_list_options(*list_app, *options);
  list_app->footer("Examples:\n  latchkey dlq list --function run\n  latchkey dlq list --all --json");
  set_api_work(*list_app, options, context,
               [options, &context](RunApi& api) { return list(*options, context.out, api); });
  std::ostream& out = context.out;
  add_id_command(*dlq, "show", "Show one dead letter with its runs", context,
                 [&out](RunApi& api, Uuid id, const IdOptions& with) { return show(out, api, id, with); });
  add_id_command(*dlq, "acknowledge", "Acknowledge a dead letter; the next failure opens a new one", context,
                 [&out](RunApi& api, Uuid id, const IdOptions& with) { return acknowledge(out, api, id, with); });
  add_retry(*dlq, context);
  add_resolve(*dlq, context);
}

}  // namespace latchkey
