// Converts the changes of a batch to statements: one per table and kind of change.
#include <algorithm>

#include "base/seeded_bug.hpp"
#include "store/postgres/block_columns.hpp"
#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

std::vector<Statement> PgTables::take_writes() {
  std::vector<Statement> writes;
  put_settlements(writes);
  put_run_writes(writes);
  put_key_writes(writes);
  put_dependency_writes(writes);
  put_dead_letter_writes(writes);
  put_member_deletes(writes);
  // These writes may change the results of earlier queries.
  if (!own_writes_.empty()) results_.clear();
  for (Statement& statement : own_writes_) writes.push_back(std::move(statement));
  own_writes_.clear();
  undo_.clear();
  undo_runs_.clear();
  has_written_ |= !writes.empty();
  return writes;
}

namespace {

Column column_of(const std::vector<Seq>& seqs) {
  Column column{Type::int8};
  for (const Seq seq : seqs) column.add(seq);
  return column;
}

void put_delete(std::vector<Statement>& writes, const std::string& text, const std::vector<Seq>& seqs) {
  if (!seqs.empty()) writes.push_back({text, Params().add(column_of(seqs))});
}

// Removes runs from the rows of outcomes that contain them.
void put_outcome_deletes(std::vector<Statement>& writes, const std::vector<Seq>& seqs) {
  writes.push_back({sql().lock_purge, {}});
  writes.push_back({sql().erase_from_outcomes, Params().add(column_of(seqs))});
}

// Adds the pieces of a block that remain after these runs were removed.
void put_rest(const Block& block, const std::vector<Seq>& removed, std::vector<Block>& pieces) {
  Seq lo = block.lo;
  const auto put = [&](Seq hi) {
    if (lo > hi) return;
    pieces.push_back(block);
    pieces.back().lo = lo;
    pieces.back().hi = hi;
  };
  for (const Seq seq : removed) {
    put(seq - 1);
    lo = seq + 1;
  }
  put(block.hi);
}

// Adds a piece, or extends the last one if both fit in one block.
void put_piece(std::vector<Block>& pieces, Block piece) {
  Block* const last = pieces.empty() ? nullptr : &pieces.back();
  if (last && last->hi + 1 == piece.lo && piece.hi - last->lo < kBlockMax && last->is_like(piece)) {
    last->hi = piece.hi;
  } else {
    pieces.push_back(std::move(piece));
  }
}

// Sorts the pieces and joins neighbours that fit in one block.
std::vector<Block> join_pieces(std::vector<Block> pieces) {
  std::ranges::sort(pieces, {}, &Block::lo);
  std::vector<Block> joined;
  for (Block& piece : pieces) put_piece(joined, std::move(piece));
  return joined;
}

Bulk bulk_of(BlockColumns& columns, const std::vector<Block>& blocks) {
  for (const Block& block : blocks) columns.add(block);
  return columns.bulk();
}

}  // namespace

// Settlements are inserted before the states: their primary key detects that another transaction settled the run.
void PgTables::put_settlements(std::vector<Statement>& writes) {
  std::ranges::sort(settled_);
  Column seq{Type::int8}, generation{Type::int4};
  for (const auto& [of, nth] : std::exchange(settled_, {})) {
    seq.add(of);
    generation.add(nth);
  }
  if (seq.size() > 0 && !LK_SEEDED(settled_without_entry))
    writes.push_back(Bulk{{{"seq", &seq}, {"generation", &generation}}}.insert_into("latchkey.settlements"));
}

void PgTables::put_run_writes(std::vector<Statement>& writes) {
  std::vector<const Run*> inserted_runs, new_rows, rows;
  std::vector<const Run*> outcomes;
  std::vector<Seq> erased, erased_rows, erased_outcomes;
  std::vector<Block> pieces;
  std::map<Seq, std::vector<Seq>> removed;  // by first run of their block: runs that leave it
  Wanted<Seq> changed = std::exchange(changed_runs_, {});
  for (const Seq seq : changed.sorted()) {
    const auto at = runs_.find(seq);
    if (at == runs_.end() || !std::exchange(at->second.is_changed, false)) continue;  // the change was undone
    RunSlot& slot = at->second;
    const StoredIn was = std::exchange(slot.stored, StoredIn::nowhere);
    if (was == StoredIn::block) removed[find_block(seq)->lo].push_back(seq);
    if (!slot.now || slot.now->is_settled()) ended_.push_back(seq);
    if (!slot.now) {
      if (was == StoredIn::nowhere) continue;
      erased.push_back(seq);
      if (was == StoredIn::row) erased_rows.push_back(seq);
      if (was == StoredIn::outcome) erased_outcomes.push_back(seq);
      continue;
    }
    const Run& run = *slot.now;
    has_queued_ |= run.as<Queued>() && run.origin == Origin::enqueued && run.waiting_for == 0;
    if (const auto deadline = next_deadline(run))
      first_deadline_ = std::min(*deadline, first_deadline_.value_or(*deadline));
    if (was == StoredIn::nowhere) {
      inserted_runs.push_back(&run);
      inserted_heads_.push_back(run.head);
    }
    if (was == StoredIn::row) {
      rows.push_back(&run);
      slot.stored = StoredIn::row;
      continue;
    }
    if (was == StoredIn::outcome) {
      if (is_plain_outcome(run)) {
        slot.stored = StoredIn::outcome;  // an outcome never changes
        continue;
      }
      erased_outcomes.push_back(seq);
    }
    if (auto block = block_of(run)) {
      put_piece(pieces, std::move(*block));
      slot.stored = StoredIn::block;
    } else if (is_plain_outcome(run)) {
      outcomes.push_back(&run);
      slot.stored = StoredIn::outcome;
    } else {
      new_rows.push_back(&run);
      slot.stored = StoredIn::row;
    }
  }

  if (!inserted_runs.empty()) writes.push_back(insert_heads(inserted_runs));
  if (!outcomes.empty()) writes.push_back(insert_outcomes(outcomes));
  if (!new_rows.empty()) writes.push_back(insert_states(new_rows));
  if (!rows.empty()) writes.push_back(update_states(rows));
  put_delete(writes, sql().erase_states, erased_rows);
  put_delete(writes, sql().erase_runs, erased);
  put_delete(writes, sql().erase_settlements, erased);
  put_delete(writes, sql().erase_duplicates, erased);
  if (!erased_outcomes.empty()) put_outcome_deletes(writes, erased_outcomes);

  std::vector<Seq> emptied;
  for (const auto& [lo, seqs] : removed) {
    put_rest(blocks_.at(lo), seqs, pieces);
    emptied.push_back(lo);
  }
  std::vector<Block> new_blocks, blocks;
  for (Block& piece : join_pieces(std::move(pieces)))
    (removed.contains(piece.lo) ? blocks : new_blocks).push_back(std::move(piece));
  for (const Seq lo : emptied) blocks_.erase(lo);
  for (const Block& block : blocks) std::erase(emptied, block.lo);
  put_delete(writes, sql().erase_blocks, emptied);
  BlockColumns updated, inserted;
  if (!blocks.empty()) writes.push_back(bulk_of(updated, blocks).update("latchkey.blocks"));
  if (!new_blocks.empty()) writes.push_back(bulk_of(inserted, new_blocks).insert_into("latchkey.blocks"));
  for (Block& block : blocks) load_block(std::move(block));
  for (Block& block : new_blocks) load_block(std::move(block));
}

void PgTables::update_head_cache() {
  for (const auto& head : inserted_heads_) heads_.add(head);
  for (const Seq seq : ended_) heads_.forget(seq);
}

// Keys are inserted in the order of their hashes, so that two batches with the same keys cannot deadlock.
void PgTables::put_key_writes(std::vector<Statement>& writes) {
  std::vector<Uuid> changed;
  for (const auto& [key, slot] : keys_)
    if (slot.is_changed) changed.push_back(key);
  std::ranges::sort(changed);
  Column inserted{Type::uuid}, tenant{Type::text}, inserted_seq{Type::int8}, moved{Type::uuid}, moved_seq{Type::int8},
      erased{Type::uuid};
  for (const Uuid& hash : changed) {
    KeySlot& slot = keys_.at(hash);
    slot.is_changed = false;
    slot.is_locked = true;
    if (slot.now && !slot.stored) {
      if (inserted_keys_) inserted_keys_->emplace_back(hash, slot.tenant);
      inserted.add(hash);
      tenant.add(slot.tenant);
      inserted_seq.add(*slot.now);
    } else if (slot.now) {
      moved.add(hash);
      moved_seq.add(*slot.now);
    } else if (slot.stored) {
      erased.add(hash);
    }
    slot.stored = slot.now;
  }
  if (inserted.size() > 0)
    writes.push_back(
        Bulk{{{"hash", &inserted}, {"tenant", &tenant}, {"seq", &inserted_seq}}}.insert_into("latchkey.keys"));
  if (moved.size() > 0) writes.push_back({sql().move_keys, Params().add(moved).add(moved_seq)});
  if (erased.size() > 0) writes.push_back({sql().erase_keys, Params().add(erased)});
}

void PgTables::put_dependency_writes(std::vector<Statement>& writes) {
  Column added_to{Type::int8}, added{Type::int8}, added_id{Type::uuid}, removed_from{Type::int8}, removed{Type::int8};
  for (const auto& [edge, is_added] : dependency_changes_) {
    (is_added ? added_to : removed_from).add(edge.first);
    (is_added ? added : removed).add(seq_in(edge.second));
    if (is_added) added_id.add(edge.second);
  }
  dependency_changes_.clear();
  Column removed_all{Type::int8};
  for (const auto& [dependent, all] : removed_dependents_) removed_all.add(seq_in(dependent));
  removed_dependents_.clear();
  if (removed_all.size() > 0) writes.push_back({sql().remove_dependencies_of, Params().add(removed_all)});
  if (removed.size() > 0) writes.push_back({sql().remove_dependencies, Params().add(removed_from).add(removed)});
  if (added.size() > 0) writes.push_back({sql().add_dependencies, Params().add(added_to).add(added).add(added_id)});
}

void PgTables::put_dead_letter_writes(std::vector<Statement>& writes) {
  for (auto& [group, slot] : dead_letters_) {
    if (!std::exchange(slot.is_changed, false)) continue;
    if (!slot.stored && inserted_dead_letters_) inserted_dead_letters_->insert_or_assign(group, *slot.now);
    written_dead_letters_.push_back(group);
    // The insert fails on the unique index of open dead letters if another server has inserted one meanwhile.
    writes.push_back(slot.stored ? update_dead_letter(*slot.now) : insert_dead_letter(*slot.now));
    slot.stored = slot.now;
  }
}

// Acknowledged dead letters without members are erased, too.
void PgTables::put_member_deletes(std::vector<Statement>& writes) {
  std::vector<Seq> runs;
  std::set<Seq> dead_letters;
  for (const auto& [seq, numbers] : erased_members_) {
    runs.push_back(seq);
    dead_letters.insert(numbers.begin(), numbers.end());
  }
  erased_members_.clear();
  if (runs.empty()) return;
  put_delete(writes, sql().erase_members, runs);
  put_delete(writes, sql().erase_steps, runs);
  writes.push_back(
      {sql().erase_empty_dead_letters, Params().add(column_of({dead_letters.begin(), dead_letters.end()}))});
}

}  // namespace latchkey::pg
