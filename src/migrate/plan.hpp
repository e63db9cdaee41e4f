// Plan: how a migration is taken back, kept beside it as 0001_name.plan.yml; docs/migrations.md has the form.
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
  std::string text;        // prose: a person does it
  bool runs_down = false;  // `run: down`: here the down file is run
};

// A query that says whether a migration, or its rollback, did what it should. Answers are compared as text: a row's
// columns joined by |, rows by newlines.
struct PlanCheck {
  std::string query;
  std::optional<std::string> after_up;        // what it answers once the migration is applied
  std::optional<std::string> after_rollback;  // and once it is taken back
  bool unchanged = false;                     // it answers the same before and after, either way
  bool is_bare = false;                       // it only has to succeed, either way
  int line = 0;
};

struct Plan {
  std::string change;
  std::string version;           // of the deployment that brings it; may be empty
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

// Adds what is wrong to `faults`; the plan then holds what could be read.
Plan parse_plan(const std::string& file, const std::string& text, std::vector<Fault>& faults);

}  // namespace latchkey::migrate
