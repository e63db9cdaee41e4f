// Reads and writes a Run as rows of lk_runs, lk_states and lk_outcomes.
#pragma once

#include "model/run.hpp"
#include "store/sqlite/database.hpp"

namespace latchkey {

using Seq = std::int64_t;

inline Seq seq_of(const RunId& id) { return static_cast<Seq>(uuid_counter(id)); }

// A row of lk_scopes.
struct ScopeName {
  std::string tenant;
  std::string function;
  bool operator==(const ScopeName&) const = default;
};

void bind_insert(Statement& insert, const Run& run, std::int64_t scope);
void bind_state(Statement& put, const Run& run);
void bind_outcome(Statement& put, const Run& run);

// For the columns of read_run or read_run_bare: row_scope() is the number of the scope that read_row() needs.
std::int64_t row_scope(const Statement& row);
Run read_row(const Statement& row, const ScopeName& scope);

}  // namespace latchkey
