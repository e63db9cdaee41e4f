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

namespace {

// Whether one row can store both outcomes.
bool have_equal_outcomes(const Run& one, const Run& other) {
  const auto& a = std::get<Completed>(one.state);
  const auto& b = std::get<Completed>(other.state);
  const auto fence_from = [](const Run& run) { return static_cast<std::int64_t>(run.fence) - seq_in(run.id()); };
  return fence_from(one) == fence_from(other) && one.first_attempt_at == other.first_attempt_at && a.at == b.at &&
         a.result == b.result && one.head->tenant == other.head->tenant;
}

}  // namespace

Statement insert_outcomes(std::span<const Run* const> runs) {
  Column lo{Type::int8}, hi{Type::int8}, tenant{Type::text}, fence_from{Type::int8}, started_at{Type::int8},
      at{Type::int8}, result{Type::bytes};
  for (std::size_t i = 0; i < runs.size();) {
    const Run& run = *runs[i];
    const Seq first = seq_in(run.id());
    Seq last = first;
    while (++i < runs.size() && seq_in(runs[i]->id()) == last + 1 && last + 1 - first < kBlockMax &&
           have_equal_outcomes(run, *runs[i]))
      last += 1;
    const auto& completed = std::get<Completed>(run.state);
    lo.add(first);
    hi.add(last);
    tenant.add(run.head->tenant);
    fence_from.add(static_cast<std::int64_t>(run.fence) - first);
    started_at.add(to_ms(run.first_attempt_at));
    at.add(to_ms(completed.at));
    result.add_or_null(completed.result);
  }
  return Bulk{{{"lo", &lo},
               {"hi", &hi},
               {"tenant", &tenant},
               {"fence_from", &fence_from},
               {"started_at", &started_at},
               {"at", &at},
               {"result", &result}}}
      .insert_into("latchkey.outcomes");
}

}  // namespace latchkey::pg
