// PgTables: dependencies between runs, as they were read and as the batch has changed them.
#include <algorithm>

#include "store/postgres/pg_tables.hpp"

namespace latchkey::pg {

bool PgTables::knows_dependents(Seq predecessor) const {
  auto at = dependents_known_.upper_bound(predecessor);
  return at != dependents_known_.begin() && (--at)->second >= predecessor;
}

void PgTables::note_dependents_known(Seq from, Seq to) {
  if (!dependents_known_.empty() && dependents_known_.rbegin()->second + 1 == from) {
    dependents_known_.rbegin()->second = to;
  } else if (auto [at, is_new] = dependents_known_.try_emplace(from, to); !is_new) {
    at->second = std::max(at->second, to);
  }
}

void PgTables::load_all_dependents(const std::vector<Seq>& predecessors) {
  for (const Seq seq : predecessors) note_dependents_known(seq, seq);
}

void PgTables::add_wait(RunId predecessor, RunId dependent) {
  const Seq seq = seq_in(predecessor);
  // Write the predecessor unchanged: a transaction whose older snapshot lacks this dependency then cannot settle it.
  set_run(seq, slot_of(seq).now);
  save_for_undo(dependency_changes_, {seq, dependent});
  dependency_changes_[{seq, dependent}] = true;
  if (!knows_dependents(seq)) return;
  save_for_undo(dependents_, seq);
  dependents_[seq].insert(dependent);
}

void PgTables::remove_wait(RunId predecessor, RunId dependent) {
  const Seq seq = seq_in(predecessor);
  save_for_undo(dependency_changes_, {seq, dependent});
  dependency_changes_[{seq, dependent}] = false;
  if (!knows_dependents(seq)) return;
  save_for_undo(dependents_, seq);
  dependents_[seq].erase(dependent);
}

void PgTables::remove_waits_of(RunId dependent) {
  save_for_undo(removed_dependents_, dependent);
  removed_dependents_[dependent] = true;
  for (auto change = dependency_changes_.begin(); change != dependency_changes_.end();) {
    const auto edge = (change++)->first;
    if (edge.second != dependent) continue;
    save_for_undo(dependency_changes_, edge);
    dependency_changes_.erase(edge);
  }
  for (auto& [seq, dependents] : dependents_) {
    if (!dependents.contains(dependent)) continue;
    save_for_undo(dependents_, seq);
    dependents.erase(dependent);
  }
}

std::vector<RunId> PgTables::dependents(RunId predecessor) {
  const Seq seq = seq_in(predecessor);
  if (!knows_dependents(seq)) {
    read_set_.dependents.insert(seq);
    throw NeedsRead{};
  }
  const auto at = dependents_.find(seq);
  if (at == dependents_.end()) return {};
  return {at->second.begin(), at->second.end()};
}

}  // namespace latchkey::pg
