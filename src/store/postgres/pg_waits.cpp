// Who waits for whom: as it was read, and as the batch has changed it.
#include <algorithm>

#include "store/postgres/pg_tables.hpp"

namespace latchkey::pg {

bool PgTables::knows_waits(Seq predecessor) const {
  auto at = waits_known_.upper_bound(predecessor);
  return at != waits_known_.begin() && (--at)->second >= predecessor;
}

void PgTables::note_waits_known(Seq from, Seq to) {
  if (!waits_known_.empty() && waits_known_.rbegin()->second + 1 == from) {
    waits_known_.rbegin()->second = to;
  } else if (auto [at, is_new] = waits_known_.try_emplace(from, to); !is_new) {
    at->second = std::max(at->second, to);
  }
}

void PgTables::load_waits(const std::vector<Seq>& predecessors) {
  for (const Seq seq : predecessors) note_waits_known(seq, seq);
}

void PgTables::add_wait(RunId predecessor, RunId dependent) {
  const Seq seq = seq_in(predecessor);
  // Written again as it is: a transaction with an older snapshot, which cannot see who waits, may then not settle it.
  set_run(seq, slot_of(seq).now);
  remember(wait_changes_, {seq, dependent});
  wait_changes_[{seq, dependent}] = true;
  if (!knows_waits(seq)) return;
  remember(waits_, seq);
  waits_[seq].insert(dependent);
}

void PgTables::remove_wait(RunId predecessor, RunId dependent) {
  const Seq seq = seq_in(predecessor);
  remember(wait_changes_, {seq, dependent});
  wait_changes_[{seq, dependent}] = false;
  if (!knows_waits(seq)) return;
  remember(waits_, seq);
  waits_[seq].erase(dependent);
}

void PgTables::remove_waits_of(RunId dependent) {
  remember(waits_forgotten_, dependent);
  waits_forgotten_[dependent] = true;
  for (auto change = wait_changes_.begin(); change != wait_changes_.end();) {
    const auto edge = (change++)->first;
    if (edge.second != dependent) continue;
    remember(wait_changes_, edge);
    wait_changes_.erase(edge);
  }
  for (auto& [seq, dependents] : waits_) {
    if (!dependents.contains(dependent)) continue;
    remember(waits_, seq);
    dependents.erase(dependent);
  }
}

std::vector<RunId> PgTables::dependents(RunId predecessor) {
  const Seq seq = seq_in(predecessor);
  if (!knows_waits(seq)) {
    needs_.waits.insert(seq);
    throw NeedsRead{};
  }
  const auto at = waits_.find(seq);
  if (at == waits_.end()) return {};
  return {at->second.begin(), at->second.end()};
}

}  // namespace latchkey::pg
