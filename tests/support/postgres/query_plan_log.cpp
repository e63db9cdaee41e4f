#include "support/postgres/query_plan_log.hpp"

#include <simdjson.h>

namespace latchkey {
namespace {

constexpr std::string_view kMark = "SELECT 'step:";
constexpr std::string_view kEntry = "LOG:  duration:";

using simdjson::dom::element;

double number(element node, std::string_view name) {
  double value = 0;
  return node[name].get(value) == simdjson::SUCCESS ? value : 0;
}
std::string text(element node, std::string_view name) {
  std::string_view value;
  return node[name].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

std::string as_integer(double count) { return std::to_string(static_cast<long>(count)); }

// A node's counts are averages over its loops.
void put_nodes(element node, QueryPlan& plan, std::size_t depth = 0) {
  const std::string type = text(node, "Node Type");
  if (type == "Nested Loop" || type.ends_with("Join")) plan.joins.push_back(type);
  const std::string table = text(node, "Relation Name");
  plan.outline += "\n" + std::string(4 + 2 * depth, ' ') + type + " " + table + " " + text(node, "Index Name") + " " +
                  as_integer(number(node, "Actual Rows")) + " rows, " + as_integer(number(node, "Actual Loops")) +
                  " times";
  for (const char* condition :
       {"Index Cond", "Filter", "Rows Removed by Filter", "Join Filter", "Rows Removed by Join Filter"}) {
    const double count = number(node, condition);
    const std::string value = count > 0 ? as_integer(count) : text(node, condition);
    if (!value.empty()) plan.outline += ", " + std::string(condition) + ": " + value;
  }
  if (type.ends_with("Scan") && !(table + text(node, "Index Name")).empty()) {
    double rows = number(node, "Actual Rows");
    for (const char* dropped : {"Rows Removed by Filter", "Rows Removed by Index Recheck"})
      rows += number(node, dropped);
    rows *= number(node, "Actual Loops");
    plan.rows += rows;
    plan.scans.push_back({type, table.empty() ? text(node, "Index Name") : table, rows});
  }
  simdjson::dom::array children;
  if (node["Plans"].get(children) != simdjson::SUCCESS) return;
  for (const element child : children) put_nodes(child, plan, depth + 1);
}

// Removes the tab at the beginning of an entry's further lines.
std::string untab(std::string_view lines) {
  std::string plain;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    if (line.starts_with('\t')) line.remove_prefix(1);
    plain.append(line).append("\n");
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return plain;
}

}  // namespace

QueryPlanLog::QueryPlanLog()
    : cluster_({"shared_preload_libraries=auto_explain", "auto_explain.log_min_duration=0",
                "auto_explain.log_analyze=on", "auto_explain.log_timing=off", "auto_explain.log_buffers=on",
                "auto_explain.log_format=json", "auto_explain.log_nested_statements=on", "log_line_prefix=",
                "log_min_messages=error", "autovacuum=off", "shared_buffers=256MB", "synchronous_commit=off"}),
      announcer_(std::make_unique<PgClient>(cluster_.url())) {}

std::string QueryPlanLog::quiet_url(const std::string& database) const {
  return url(database) + "?options=-c%20auto_explain.log_min_duration%3D-1";
}

void QueryPlanLog::announce(const std::string& step) { announcer_->execute(std::string(kMark) + step + "'"); }

std::vector<QueryPlan> QueryPlanLog::read() {
  const std::string log = cluster_.log();
  std::string_view rest = std::string_view(log).substr(read_);
  read_ = log.size();
  std::vector<QueryPlan> plans;
  std::string step;
  simdjson::dom::parser parser;
  for (std::size_t at = rest.find(kEntry); at != std::string_view::npos;) {
    const std::size_t next = rest.find(kEntry, at + 1);
    const std::string entry = untab(rest.substr(at, next - at));
    at = next;
    const std::size_t open = entry.find('{'), close = entry.rfind("\n}");
    if (open == std::string::npos || close == std::string::npos) continue;
    element entire;
    if (parser.parse(entry.substr(open, close + 2 - open)).get(entire) != simdjson::SUCCESS)
      throw std::runtime_error("no plan: " + entry);
    QueryPlan plan{.step = step, .sql = text(entire, "Query Text"), .scans = {}, .joins = {}};
    if (plan.sql.starts_with(kMark)) {
      step = plan.sql.substr(kMark.size(), plan.sql.size() - kMark.size() - 1);
      continue;
    }
    element root;
    if (entire["Plan"].get(root) != simdjson::SUCCESS) continue;
    put_nodes(root, plan);
    for (const char* pages : {"Shared Hit Blocks", "Shared Read Blocks"}) plan.pages += number(root, pages);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace latchkey
