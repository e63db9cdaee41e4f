#include "store/postgres/block_columns.hpp"

namespace latchkey::pg {

Block read_block(const Rows& rows, int row) {
  Block block{.lo = rows.integer(row, 0),
              .hi = rows.integer(row, 1),
              .tenant = std::string(rows.bytes(row, 2)),
              .function = std::string(rows.bytes(row, 3)),
              .priority = static_cast<std::int32_t>(rows.integer(row, 4)),
              .due_at = from_ms(rows.integer(row, 5)),
              .owner = {}};
  if (rows.is_null(row, 10)) return block;
  block.owner = BlockOwner{.fence_from = rows.integer(row, 6),
                           .started_at = from_ms(rows.integer(row, 7)),
                           .lease_until = from_ms(rows.integer(row, 8)),
                           .lease = Duration{rows.integer(row, 9)},
                           .session = rows.uuid(row, 10)};
  return block;
}

PlainOutcome read_outcome(const Rows& rows, int row) {
  return {.fence = static_cast<Fence>(rows.integer(row, 1)),
          .started_at = from_ms(rows.integer(row, 2)),
          .at = from_ms(rows.integer(row, 3)),
          .result = Bytes(rows.bytes(row, 4))};
}

void BlockColumns::add(const Block& block) {
  lo.add(block.lo);
  hi.add(block.hi);
  tenant.add(block.tenant);
  function.add(block.function);
  priority.add(block.priority);
  due.add(to_ms(block.due_at));
  if (!block.owner) {
    for (Column* column : {&fence_from, &started_at, &lease_until, &lease_ms, &session}) column->add_null();
    return;
  }
  fence_from.add(block.owner->fence_from);
  started_at.add(to_ms(block.owner->started_at));
  lease_until.add(to_ms(block.owner->lease_until));
  lease_ms.add(block.owner->lease.count());
  session.add(block.owner->session);
}

Bulk BlockColumns::bulk() const {
  return {{{"lo", &lo},
           {"hi", &hi},
           {"tenant", &tenant},
           {"function", &function},
           {"priority", &priority},
           {"due", &due},
           {"fence_from", &fence_from},
           {"started_at", &started_at},
           {"lease_until", &lease_until},
           {"lease_ms", &lease_ms},
           {"session", &session}}};
}

Statement insert_outcomes(std::span<const Run* const> runs) {
  Column seq{Type::int8}, tenant{Type::text}, fence{Type::int8}, started_at{Type::int8}, at{Type::int8},
      result{Type::bytes};
  for (const Run* run : runs) {
    const auto& completed = std::get<Completed>(run->state);
    seq.add(seq_in(run->id()));
    tenant.add(run->head->tenant);
    fence.add(static_cast<std::int64_t>(run->fence));
    started_at.add(to_ms(run->first_attempt_at));
    at.add(to_ms(completed.at));
    result.add_or_null(completed.result);
  }
  return Bulk{{{"seq", &seq},
               {"tenant", &tenant},
               {"fence", &fence},
               {"started_at", &started_at},
               {"at", &at},
               {"result", &result}}}
      .insert_into("latchkey.outcomes");
}

}  // namespace latchkey::pg
