// How a Run lies in latchkey.runs.
#pragma once

#include <span>

#include "model/run.hpp"
#include "store/postgres/wire.hpp"

namespace latchkey::pg {

using Seq = std::int64_t;

inline Seq seq_of(const Uuid& id) { return static_cast<Seq>(uuid_counter(id)); }

// What read_run() reads, in its order; of latchkey.runs as r.
extern const char* const kRunColumns;
inline constexpr int kRunColumnCount = 38;

Run read_run(const Rows& rows, int row);
// One statement for all of them. The columns that change; the head stays.
Statement insert_runs(std::span<const Run> runs);
Statement update_runs(std::span<const Run> runs);

}  // namespace latchkey::pg
