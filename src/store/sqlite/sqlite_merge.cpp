// The merge writes the keys of recent runs from the key window into the index tables, a slice per commit.
#include <algorithm>

#include "base/assert.hpp"
#include "base/seeded_bug.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

void SqliteTables::merge(std::size_t window_min, std::size_t amount) {
  const bool idle = merging_to_ <= state_.merged;
  if (idle && committed_.seq - state_.merged < static_cast<Seq>(window_min)) return;
  if (idle) {
    // Only durable keys are frozen: the keys of the open transaction are still staged.
    window_.freeze();
    merging_to_ = committed_.seq;
  }
  auto slice = window_.next_slice(amount);
  // Keys that this transaction purges are still in the window.
  if (!erased_.empty())
    std::erase_if(slice.entries, [&](const auto& entry) { return std::ranges::find(erased_, entry) != erased_.end(); });
  if (LK_SEEDED(merge_drops_an_entry) && !slice.entries.empty()) slice.entries.pop_back();
  keys_.merge(slice.entries);
  filter_.add(slice.entries);
  slice_ = slice.taken;

  const Seq listed = std::min(merging_to_, state_.listed + static_cast<Seq>(amount));
  for (const char* index : {"index_lists", "index_open"})
    database_.prepare(find_sql(index)).bind(1, state_.listed).bind(2, listed).run();
  state_.listed = listed;

  if (window_.left() > slice_ || state_.listed < merging_to_) return;
  state_.merged = merging_to_;
  // A pointer made at the last of the merged runs may be younger than the freeze, so it stays until the next merge.
  database_.prepare(find_sql("erase_pointed")).bind(1, state_.merged).run();
}

void SqliteTables::merge_all(Instant now) {
  // First ends the merge that is under way, then merges the keys that were added meanwhile.
  while (state_.merged < committed_.seq) {
    begin();
    changed_ = true;
    finish(now, 1, static_cast<std::size_t>(committed_.seq));
  }
}

}  // namespace latchkey
