#include "cli/terminal/migrate_report.hpp"

#include <fmt/format.h>

#include <ostream>

#include "cli/terminal/table.hpp"
#include "wire/json_out.hpp"

namespace latchkey {
namespace {

using wire::ObjectOut;
using namespace migrate;

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) {
    std::string object;  // ObjectOut escapes the text; there is no writer for arrays
    ObjectOut(object).text("x", text).end();
    list += (list.size() > 1 ? "," : "") + object.substr(5, object.size() - 6);
  }
  return list + "]";
}

std::vector<std::string> texts_of(const std::vector<PlanStep>& steps) {
  std::vector<std::string> texts;
  for (const PlanStep& step : steps) texts.push_back(step.text);
  return texts;
}

std::string list_checks(const std::vector<PlanCheck>& checks) {
  std::string list = "[";
  for (const PlanCheck& check : checks) {
    if (list.size() > 1) list += ",";
    ObjectOut object(list);
    object.text("query", check.query);
    if (check.after_up) object.text("after_up", *check.after_up);
    if (check.after_rollback) object.text("after_rollback", *check.after_rollback);
    if (check.unchanged) object.flag("unchanged", true);
    object.end();
  }
  return list + "]";
}

void append_plan(std::string& text, const Migration& one) {
  ObjectOut object(text);
  object.text("migration", one.label).number("version", one.version).text("change", one.plan.change);
  object.word("data_loss_risk", to_string(one.plan.data_loss_risk))
      .number("estimated_time_ms", one.plan.estimated_time.count());
  object.raw("steps", quoted_list(texts_of(one.plan.steps))).raw("data_changes", quoted_list(one.plan.data_changes));
  object.raw("verification_queries", list_checks(one.plan.checks))
      .raw("verification_steps", quoted_list(one.plan.verification_steps));
  object.raw("dependencies", quoted_list(one.plan.dependencies)).raw("triggers", quoted_list(one.plan.triggers));
  if (!one.plan.version.empty()) object.text("deployment_version", one.plan.version);
  if (!one.plan.rollback_version.empty()) object.text("rollback_version", one.plan.rollback_version);
  object.end();
}

void append_entry(std::string& text, const Entry& entry) {
  ObjectOut object(text);
  object.text("migration", entry.label).number("version", entry.version).word("state", to_string(entry.state));
  if (entry.applied_at.empty())
    object.raw("applied_at", "null");
  else
    object.text("applied_at", entry.applied_at);
  object.end();
}

void print_list(std::ostream& out, const std::string& title, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  out << "  " << title << ":\n";
  for (const std::string& text : texts) out << "    - " << plain(text, 200) << '\n';
}

}  // namespace

void print_status(std::ostream& out, const std::vector<Entry>& entries, As as) {
  if (as == As::json) {
    out << wire::write_page(entries, "", &append_entry) << '\n';
    return;
  }
  Table table({"MIGRATION", "STATE", "APPLIED"});
  for (const Entry& entry : entries)
    table.add({plain(entry.label), std::string(to_string(entry.state)), plain(entry.applied_at)});
  table.print(out);
}

void print_done(std::ostream& out, const Migration& migration, const std::string& state, As as) {
  std::string text;
  if (as == As::json)
    ObjectOut(text).text("migration", migration.label).number("version", migration.version).word("state", state).end();
  else
    text = fmt::format("{} {}", migration.label, state);
  out << text << '\n' << std::flush;
}

void print_made(std::ostream& out, const NewMigration& made, As as) {
  std::string text;
  if (as == As::json)
    ObjectOut(text)
        .text("migration", made.label)
        .number("version", made.version)
        .raw("files", quoted_list(made.paths))
        .end();
  else
    for (const std::string& path : made.paths) text += (text.empty() ? "made " : "\nmade ") + plain(path, 1000);
  out << text << '\n' << std::flush;
}

void print_plans(std::ostream& out, const Collection& files, As as) {
  if (as == As::json) {
    out << wire::write_page(files.migrations, "", &append_plan) << '\n';
    return;
  }
  for (const Migration& one : files.migrations) print_rollback(out, one);
}

void print_rollback(std::ostream& out, const Migration& migration) {
  const Plan& plan = migration.plan;
  out << fmt::format("{}: {}\n  data-loss risk: {}; about {}\n", migration.label, latchkey::plain(plan.change, 200),
                     to_string(plan.data_loss_risk), format_duration(plan.estimated_time));
  if (!plan.rollback_version.empty()) out << "  back to version: " << latchkey::plain(plan.rollback_version) << '\n';
  print_list(out, "when", plan.triggers);
  print_list(out, "first", plan.dependencies);
  print_list(out, "steps", texts_of(plan.steps));
  print_list(out, "data", plan.data_changes);
  print_list(out, "look", plan.verification_steps);
}

}  // namespace latchkey
