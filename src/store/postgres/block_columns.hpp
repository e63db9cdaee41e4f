// How blocks and outcomes lie in their tables.
#pragma once

#include <span>

#include "store/postgres/places.hpp"
#include "store/postgres/wire.hpp"

namespace latchkey::pg {

// Of latchkey.blocks as b; what read_block() reads.
inline constexpr const char* kBlockColumns =
    "b.lo, b.hi, b.tenant, b.function, b.priority, b.due, b.fence_from, b.started_at, b.lease_until, b.lease_ms, "
    "b.session";
inline constexpr int kBlockDueColumn = 5;
Block read_block(const Rows& rows, int row);

// Of latchkey.outcomes as o, for the run x, behind its seq.
inline constexpr const char* kOutcomeColumns = "x.seq, o.fence_from + x.seq, o.started_at, o.at, o.result";
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
