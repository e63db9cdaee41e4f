// What a batch has written, as statements: one per table and kind of change.
#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_tables.hpp"

namespace latchkey::pg {

bool PgTables::has_writes() const {
  const auto any = [](const auto& map) {
    for (const auto& [key, slot] : map)
      if (slot.is_changed) return true;
    return false;
  };
  return !own_writes_.empty() || !wait_changes_.empty() || !waits_forgotten_.empty() || any(runs_) || any(keys_) ||
         any(letters_);
}

std::vector<Statement> PgTables::take_writes() {
  std::vector<Statement> writes;
  put_run_writes(writes);
  put_key_writes(writes);
  put_wait_writes(writes);
  put_letter_writes(writes);
  // What was answered before these may be another now.
  if (!own_writes_.empty()) {
    answers_.clear();
    unread_.clear();
  }
  for (Statement& statement : own_writes_) writes.push_back(std::move(statement));
  own_writes_.clear();
  undo_.clear();
  return writes;
}

void PgTables::put_run_writes(std::vector<Statement>& writes) {
  std::vector<Run> made, changed;
  Column erased{Type::int8};
  for (auto& [seq, slot] : runs_) {
    if (!std::exchange(slot.is_changed, false)) continue;
    if (slot.now) {
      (slot.stored ? changed : made).push_back(*slot.now);
    } else if (slot.stored) {
      erased.add(seq);
    }
    slot.stored = slot.now;
  }
  if (!made.empty()) writes.push_back(insert_runs(made));
  if (!changed.empty()) writes.push_back(update_runs(changed));
  if (erased.size() > 0) writes.push_back({"DELETE FROM latchkey.runs WHERE seq = ANY($1)", Params().add(erased)});
}

// In the order of the hashes, as every batch does: two that want the same keys wait for each other one way only.
void PgTables::put_key_writes(std::vector<Statement>& writes) {
  Column made{Type::bytes}, of{Type::text}, made_seq{Type::int8}, moved{Type::bytes}, moved_seq{Type::int8},
      erased{Type::bytes};
  for (auto& [hash, slot] : keys_) {
    if (!std::exchange(slot.is_changed, false)) continue;
    if (slot.now && !slot.stored) {
      made.add(hash);
      of.add(tenants_.at(hash));
      made_seq.add(*slot.now);
    } else if (slot.now) {
      moved.add(hash);
      moved_seq.add(*slot.now);
    } else if (slot.stored) {
      erased.add(hash);
    }
    slot.stored = slot.now;
  }
  if (made.size() > 0)
    writes.push_back({"INSERT INTO latchkey.keys (hash, tenant, seq) SELECT * FROM unnest($1, $2, $3)",
                      Params().add(made).add(of).add(made_seq)});
  if (moved.size() > 0)
    writes.push_back(
        {"UPDATE latchkey.keys k SET seq = u.seq FROM unnest($1, $2) AS u(hash, seq) WHERE k.hash = u.hash",
         Params().add(moved).add(moved_seq)});
  if (erased.size() > 0) writes.push_back({"DELETE FROM latchkey.keys WHERE hash = ANY($1)", Params().add(erased)});
}

void PgTables::put_wait_writes(std::vector<Statement>& writes) {
  Column added_to{Type::int8}, added{Type::int8}, added_id{Type::uuid}, removed_from{Type::int8}, removed{Type::int8};
  for (const auto& [edge, is_added] : wait_changes_) {
    (is_added ? added_to : removed_from).add(edge.first);
    (is_added ? added : removed).add(seq_of(edge.second));
    if (is_added) added_id.add(edge.second);
  }
  wait_changes_.clear();
  Column forgotten{Type::int8};
  for (const auto& [dependent, all] : waits_forgotten_) forgotten.add(seq_of(dependent));
  waits_forgotten_.clear();
  if (forgotten.size() > 0)
    writes.push_back({"DELETE FROM latchkey.waits WHERE dependent = ANY($1)", Params().add(forgotten)});
  if (removed.size() > 0)
    writes.push_back(
        {"DELETE FROM latchkey.waits w USING unnest($1, $2) AS u(predecessor, dependent) "
         "WHERE w.predecessor = u.predecessor AND w.dependent = u.dependent",
         Params().add(removed_from).add(removed)});
  if (added.size() > 0)
    writes.push_back({"INSERT INTO latchkey.waits SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING",
                      Params().add(added_to).add(added).add(added_id)});
}

void PgTables::put_letter_writes(std::vector<Statement>& writes) {
  for (auto& [name, slot] : letters_) {
    if (!std::exchange(slot.is_changed, false)) continue;
    // The unique index of open letters judges: another host may have opened one meanwhile.
    writes.push_back(slot.stored ? update_letter(*slot.now) : insert_letter(*slot.now));
    slot.stored = slot.now;
  }
}

}  // namespace latchkey::pg
