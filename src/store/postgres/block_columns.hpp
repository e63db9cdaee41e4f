// Converts blocks and outcomes from and to the rows of latchkey.blocks and latchkey.outcomes.
#pragma once

#include <span>

#include "pg/codec.hpp"
#include "store/postgres/run_layout.hpp"

namespace latchkey::pg {

inline constexpr int kBlockDueColumn = 5;  // the column `due` among block_columns
Block read_block(const Rows& rows, int row);

// Reads outcome_columns; the first of them is the run's seq.
PlainOutcome read_outcome(const Rows& rows, int row);

struct BlockColumns {
  Column lo{Type::int8}, hi{Type::int8}, tenant{Type::text}, function{Type::text}, priority{Type::int4},
      due{Type::int8}, fence_from{Type::int8}, started_at{Type::int8}, lease_until{Type::int8}, lease_ms{Type::int8},
      session{Type::uuid};
  void add(const Block& block);
  Bulk bulk() const;
};

// Requires is_plain_outcome() of every run, and the order of their counters: neighbours with equal outcomes share a
// row.
Statement insert_outcomes(std::span<const Run* const> runs);

}  // namespace latchkey::pg
