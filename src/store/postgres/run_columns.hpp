// How a Run lies in latchkey.runs (its head) and latchkey.states (what changes).
#pragma once

#include <span>

#include "pg/codec.hpp"
#include "store/postgres/run_layout.hpp"

namespace latchkey::pg {

// What `keys` finds a run by: the first half of the hash.
inline Uuid name_key(const Digest& hash) {
  Uuid name;
  std::memcpy(name.bytes.data(), hash.data(), name.bytes.size());
  return name;
}

// Of head_columns and state_columns (columns.sql).
inline constexpr int kHeadColumnCount = 17;
inline constexpr int kStateColumnCount = 22;
inline constexpr int kStateAtColumn = 10;  // its `at`

// `from`: the column that they begin at.
std::shared_ptr<const RunHead> read_head(const Rows& rows, int row, int from = 0);
// Everything but the head; effect_key is nil where it is the id.
void read_state(const Rows& rows, int row, int from, Run& run);
Run with_head(Run run, std::shared_ptr<const RunHead> head);
// The head's columns, then the state's.
Run read_run(const Rows& rows, int row, int from = 0);

// One statement for all of them.
Statement insert_heads(std::span<const Run* const> runs);
Statement insert_states(std::span<const Run* const> runs);
Statement update_states(std::span<const Run* const> runs);

}  // namespace latchkey::pg
