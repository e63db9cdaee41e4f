// Converts a Run from and to the rows of latchkey.runs (its head, which never changes) and latchkey.states.
#pragma once

#include <span>

#include "pg/codec.hpp"
#include "store/postgres/run_layout.hpp"

namespace latchkey::pg {

// The primary key of latchkey.keys: the first half of the key's hash.
inline Uuid name_key(const Digest& hash) {
  Uuid name;
  std::memcpy(name.bytes.data(), hash.data(), name.bytes.size());
  return name;
}

// Numbers of head_columns and state_columns (columns.sql).
inline constexpr int kHeadColumnCount = 17;
inline constexpr int kStateColumnCount = 22;
inline constexpr int kStateAtColumn = 10;  // the column `at` among state_columns

// `from`: the first of the columns.
std::shared_ptr<const RunHead> read_head(const Rows& rows, int row, int from = 0);
// Reads everything but the head; effect_key is nil where it equals the id.
void read_state(const Rows& rows, int row, int from, Run& run);
Run with_head(Run run, std::shared_ptr<const RunHead> head);
// Reads the head's columns, then the state's.
Run read_run(const Rows& rows, int row, int from = 0);

// Each returns one statement for all runs.
Statement insert_heads(std::span<const Run* const> runs);
Statement insert_states(std::span<const Run* const> runs);
Statement update_states(std::span<const Run* const> runs);

}  // namespace latchkey::pg
