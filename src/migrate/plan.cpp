#include "migrate/plan.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "base/suggest.hpp"
#include "migrate/sql_script.hpp"

namespace latchkey::migrate {
namespace {

// Other spellings of a member that plans use.
const std::map<std::string, std::string> kSpellings{
    {"changeDescription", "change"},
    {"change_description", "change"},
    {"description", "change"},
    {"rollbackVersion", "rollback_version"},
    {"rollback_triggers", "triggers"},
    {"rollbackTriggers", "triggers"},
    {"rollbackSteps", "steps"},
    {"rollback_steps", "steps"},
    {"dataLossRisk", "data_loss_risk"},
    {"dataChanges", "data_changes"},
    {"estimatedTime", "estimated_time"},
    {"verificationQueries", "verification_queries"},
    {"verificationSteps", "verification_steps"},
};

// The members of `deployment` and those of `rollback_plan`. All of them may also be at the top level.
const std::set<std::string> kDeployment{"version", "rollback_version", "triggers"};
const std::set<std::string> kRollback{"change",
                                      "steps",
                                      "data_loss_risk",
                                      "data_changes",
                                      "estimated_time",
                                      "verification_queries",
                                      "verification_steps",
                                      "dependencies"};

class Reader {
 public:
  Reader(const std::string& file, std::vector<Fault>& faults) : file_(file), faults_(faults) {}

  Plan read(const YAML::Node& root) {
    std::set<std::string> known = kDeployment;
    known.insert(kRollback.begin(), kRollback.end());
    known.insert({"deployment", "rollback_plan"});
    read_members(root, "the plan", known);
    for (const char* name :
         {"change", "steps", "data_loss_risk", "estimated_time", "verification_queries", "dependencies"})
      if (!seen_.contains(name)) add(root, fmt::format("`{}` is missing", name));
    return std::move(plan_);
  }

 private:
  void add(const YAML::Node& at, std::string text) {
    const auto mark = at.Mark();
    faults_.push_back({file_, mark.is_null() ? 0 : mark.line + 1, std::move(text)});
  }

  void read_members(const YAML::Node& node, const std::string& what, const std::set<std::string>& known) {
    if (!node.IsMap()) return add(node, fmt::format("{} must have members, `name: value`", what));
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        add(member.first, "a member's name must be text");
        continue;
      }
      const std::string written = member.first.Scalar();
      const auto spelling = kSpellings.find(written);
      const std::string name = spelling == kSpellings.end() ? written : spelling->second;
      if (!known.contains(name)) {
        add_unknown(member.first, written, known);
      } else if (!seen_.insert(name).second) {
        add(member.first, fmt::format("`{}` is said twice", written));
      } else {
        read_member(name, member.second);
      }
    }
  }

  void add_unknown(const YAML::Node& at, const std::string& name, const std::set<std::string>& known) {
    const auto nearest = find_nearest(name, {known.begin(), known.end()});
    add(at, fmt::format("there is no member `{}`{}", name,
                        nearest ? fmt::format("; did you mean `{}`?", *nearest) : std::string()));
  }

  void read_member(const std::string& name, const YAML::Node& node) {
    if (name == "deployment") return read_members(node, "`deployment`", kDeployment);
    if (name == "rollback_plan") return read_members(node, "`rollback_plan`", kRollback);
    if (name == "change") plan_.change = read_text(name, node);
    if (name == "version") plan_.version = read_text(name, node);
    if (name == "rollback_version") plan_.rollback_version = read_text(name, node);
    if (name == "triggers") read_triggers(node);
    if (name == "steps") each(name, node, [&](const YAML::Node& step) { read_step(step); });
    if (name == "data_loss_risk") read_risk(node);
    if (name == "data_changes") plan_.data_changes = read_texts(name, node);
    if (name == "estimated_time") read_time(node);
    if (name == "verification_queries") each(name, node, [&](const YAML::Node& check) { read_check(check); });
    if (name == "verification_steps") plan_.verification_steps = read_texts(name, node);
    if (name == "dependencies") read_dependencies(node);
  }

  std::string read_text(const std::string& name, const YAML::Node& node) {
    if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
    add(node, fmt::format("`{}` must be text", name));
    return {};
  }

  void each(const std::string& name, const YAML::Node& node, const std::function<void(const YAML::Node&)>& read) {
    if (!node.IsSequence() || node.size() == 0)
      return add(node, fmt::format("`{}` must be a list with at least one item, each begun with `- `", name));
    for (const auto& item : node) read(item);
  }

  std::vector<std::string> read_texts(const std::string& name, const YAML::Node& node) {
    std::vector<std::string> texts;
    each(name, node, [&](const YAML::Node& item) { texts.push_back(read_text("an item of " + name, item)); });
    return texts;
  }

  void read_dependencies(const YAML::Node& node) {
    if (node.IsSequence() && node.size() == 0) return;  // an explicit "none"
    plan_.dependencies = read_texts("dependencies", node);
  }

  void read_triggers(const YAML::Node& node) {
    static const std::regex kForm(R"(\w+ *(<|<=|>|>=) *\d+(\.\d+)? *(%|ms|s|m|h)?)");
    plan_.triggers = read_texts("triggers", node);
    for (const std::string& trigger : plan_.triggers)
      if (!std::regex_match(trigger, kForm))
        add(node, fmt::format("the trigger `{}` is not of the form `error_rate > 5%`", trigger));
  }

  void read_step(const YAML::Node& node) {
    if (node.IsScalar()) return plan_.steps.push_back({read_text("a step", node), false});
    if (!node.IsMap() || node.size() != 1 || node.begin()->first.as<std::string>("") != "run" ||
        node.begin()->second.as<std::string>("") != "down")
      return add(node, "a step is text for an operator, or `run: down`");
    if (std::ranges::any_of(plan_.steps, &PlanStep::runs_down)) return add(node, "`run: down` is said twice");
    plan_.steps.push_back({"run the down file", true});
  }

  void read_risk(const YAML::Node& node) {
    const std::string text = read_text("data_loss_risk", node);
    for (const auto risk : {DataLossRisk::none, DataLossRisk::minimal, DataLossRisk::significant})
      if (text == to_string(risk)) return void(plan_.data_loss_risk = risk);
    if (!text.empty()) add(node, fmt::format("`data_loss_risk` is none, minimal or significant, not `{}`", text));
  }

  void read_time(const YAML::Node& node) {
    static const std::regex kForm(R"((\d{1,6}) *(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?))");
    const std::string text = read_text("estimated_time", node);
    std::smatch match;
    if (text.empty()) return;
    if (!std::regex_match(text, match, kForm))
      return add(node, fmt::format("`estimated_time` is a number and a unit, such as `15 minutes`, not `{}`", text));
    const std::map<char, std::chrono::seconds> units{{'s', std::chrono::seconds{1}},
                                                     {'m', std::chrono::minutes{1}},
                                                     {'h', std::chrono::hours{1}},
                                                     {'d', std::chrono::days{1}}};
    plan_.estimated_time = std::stol(match[1]) * units.at(match[2].str()[0]);
  }

  void read_check(const YAML::Node& node) {
    PlanCheck check{.line = node.Mark().line + 1};
    if (node.IsScalar()) {
      check.query = node.Scalar();
      check.is_bare = true;
    } else if (!node.IsMap()) {
      return add(node, "a verification query is text, or has a `query` and what it answers");
    } else {
      read_check_members(node, check);
    }
    lint_query(node, check);
    plan_.checks.push_back(std::move(check));
  }

  void read_check_members(const YAML::Node& node, PlanCheck& check) {
    static const std::set<std::string> kKnown{"query", "after_up", "after_rollback", "unchanged"};
    std::set<std::string> seen;
    for (const auto& member : node) {
      const std::string name = member.first.as<std::string>("");
      if (!kKnown.contains(name)) {
        add_unknown(member.first, name, kKnown);
      } else if (!seen.insert(name).second) {
        add(member.first, fmt::format("`{}` is said twice", name));
      } else if (name == "query") {
        check.query = read_text(name, member.second);
      } else if (name == "unchanged") {
        if (!YAML::convert<bool>::decode(member.second, check.unchanged))
          add(member.second, "`unchanged` is true or false");
      } else {
        (name == "after_up" ? check.after_up : check.after_rollback) = read_answer(name, member.second);
      }
    }
    if (!check.after_up && !check.after_rollback && !check.unchanged)
      add(node, "say what the query answers: `after_up`, `after_rollback` or `unchanged: true`");
  }

  // Reads a value, or a list of rows.
  std::string read_answer(const std::string& name, const YAML::Node& node) {
    if (node.IsNull()) return "null";
    if (node.IsScalar()) return node.Scalar();
    if (!node.IsSequence()) return add(node, fmt::format("`{}` is a value, or a list with one for each row", name)), "";
    std::vector<std::string> rows;
    for (const auto& row : node) {
      if (!row.IsNull() && !row.IsScalar())
        add(row, fmt::format("a row of `{}` is one text, its columns joined by |", name));
      rows.push_back(row.IsScalar() ? row.Scalar() : "null");
    }
    return fmt::format("{}", fmt::join(rows, "\n"));
  }

  void lint_query(const YAML::Node& node, const PlanCheck& check) {
    const auto statements = split_sql(check.query);
    if (statements.size() != 1) return add(node, "a verification query is one statement");
    const auto words = first_words(statements[0].text, 1);
    static const std::set<std::string> kReads{"SELECT", "WITH", "VALUES", "TABLE"};
    if (words.empty() || !kReads.contains(words[0]))
      add(node, "a verification query only reads: it begins with SELECT");
  }

  const std::string& file_;
  std::vector<Fault>& faults_;
  std::set<std::string> seen_;
  Plan plan_;
};

}  // namespace

std::string_view to_string(DataLossRisk risk) {
  switch (risk) {
    case DataLossRisk::none:
      return "none";
    case DataLossRisk::minimal:
      return "minimal";
    case DataLossRisk::significant:
      return "significant";
  }
  return "";
}

Plan parse_plan(const std::string& file, const std::string& text, std::vector<Fault>& faults) {
  const std::size_t before = faults.size();
  try {
    const auto documents = YAML::LoadAll(text);
    if (documents.size() != 1 || !documents[0].IsMap())
      faults.push_back({file, 1, "a plan is one YAML document with members, `name: value`"});
    else
      return Reader(file, faults).read(documents[0]);
  } catch (const YAML::Exception& error) {
    faults.resize(before);
    faults.push_back({file, error.mark.is_null() ? 0 : error.mark.line + 1, "not YAML: " + error.msg});
  }
  return {};
}

}  // namespace latchkey::migrate
