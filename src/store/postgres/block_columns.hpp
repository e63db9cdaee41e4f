// How blocks and outcomes lie in their tables.
#pragma once

#include <span>

#include "pg/codec.hpp"
#include "store/postgres/run_layout.hpp"

namespace latchkey::pg {

// Of block_columns.
inline constexpr int kBlockDueColumn = 5;
Block read_block(const Rows& rows, int row);

// Of outcome_columns, behind the run's seq.
PlainOutcome read_outcome(const Rows& rows, int row);

struct BlockColumns {
  Column lo{Type::int8}, hi{Type::int8}, tenant{Type::text}, function{Type::text}, priority{Type::int4},
      due{Type::int8}, fence_from{Type::int8}, started_at{Type::int8}, lease_until{Type::int8}, lease_ms{Type::int8},
      session{Type::uuid};
  void add(const Block& block);
  Bulk bulk() const;
};

// Of runs that is_plain_outcome() holds for, in the order of their counters: neighbours that ended alike lie in one
// row.
Statement insert_outcomes(std::span<const Run* const> runs);

}  // namespace latchkey::pg
