// Plan: the rollback plan of a migration, in the file 0001_name.plan.yml; docs/migrations.md describes its form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "migrate/migration_error.hpp"

namespace latchkey::migrate {

enum class DataLossRisk { none, minimal, significant };
std::string_view to_string(DataLossRisk risk);

struct PlanStep {
  std::string text;        // prose: an operator does it
  bool runs_down = false;  // `run: down`: the runner executes the down file
};

// A query that verifies a migration or its rollback. Answers are compared as text: the columns of a row joined by |,
// rows by newlines.
struct PlanCheck {
  std::string query;
  std::optional<std::string> after_up;        // its answer after the migration was applied
  std::optional<std::string> after_rollback;  // its answer after the rollback
  bool unchanged = false;                     // its answer is the same before and after, in both directions
  bool is_bare = false;                       // it only has to succeed, in both directions
  int line = 0;
};

struct Plan {
  std::string change;
  std::string version;           // of the deployment with this migration; may be empty
  std::string rollback_version;  // the one to go back to
  std::vector<std::string> triggers;
  std::vector<PlanStep> steps;
  DataLossRisk data_loss_risk = DataLossRisk::none;
  std::vector<std::string> data_changes;
  Duration estimated_time{};
  std::vector<PlanCheck> checks;
  std::vector<std::string> verification_steps;  // prose
  std::vector<std::string> dependencies;
};

// Adds the faults of the plan to `faults`; the returned plan has the members that could be read.
Plan parse_plan(const std::string& file, const std::string& text, std::vector<Fault>& faults);

}  // namespace latchkey::migrate
