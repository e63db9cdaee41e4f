// What a batch has written, as statements: one per table and kind of change.
#include <algorithm>

#include "base/seeded_bug.hpp"
#include "store/postgres/block_columns.hpp"
#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

std::vector<Statement> PgTables::take_writes() {
  std::vector<Statement> writes;
  put_settlements(writes);
  put_run_writes(writes);
  put_key_writes(writes);
  put_wait_writes(writes);
  put_letter_writes(writes);
  put_member_deletes(writes);
  // What was answered before these may be another now.
  if (!own_writes_.empty()) answers_.clear();
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

// Takes these out of the rows that speak for them.
void put_fewer_outcomes(std::vector<Statement>& writes, const std::vector<Seq>& seqs) {
  writes.push_back({sql().hold_purge, {}});
  writes.push_back({sql().erase_from_outcomes, Params().add(column_of(seqs))});
}

// What is left of a block without these.
void put_rest(const Block& block, const std::vector<Seq>& gone, std::vector<Block>& pieces) {
  Seq lo = block.lo;
  const auto put = [&](Seq hi) {
    if (lo > hi) return;
    pieces.push_back(block);
    pieces.back().lo = lo;
    pieces.back().hi = hi;
  };
  for (const Seq seq : gone) {
    put(seq - 1);
    lo = seq + 1;
  }
  put(block.hi);
}

// Behind one that is like it, it becomes a part of that.
void put_piece(std::vector<Block>& pieces, Block piece) {
  Block* const last = pieces.empty() ? nullptr : &pieces.back();
  if (last && last->hi + 1 == piece.lo && piece.hi - last->lo < kBlockMax && last->is_like(piece)) {
    last->hi = piece.hi;
  } else {
    pieces.push_back(std::move(piece));
  }
}

// Neighbours that are alike become one.
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

// Before the rows that say how it ended: whatever those are, this judges.
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
  std::vector<const Run*> made, new_rows, rows;
  std::vector<const Run*> outcomes;
  std::vector<Seq> erased, erased_rows, erased_outcomes;
  std::vector<Block> pieces;
  std::map<Seq, std::vector<Seq>> gone;  // from which block: which
  Wanted<Seq> changed = std::exchange(changed_runs_, {});
  for (const Seq seq : changed.sorted()) {
    const auto at = runs_.find(seq);
    if (at == runs_.end() || !std::exchange(at->second.is_changed, false)) continue;  // it was undone
    RunSlot& slot = at->second;
    const Place was = std::exchange(slot.stored, Place::nowhere);
    if (was == Place::block) gone[find_block(seq)->lo].push_back(seq);
    if (!slot.now || slot.now->is_settled()) done_.push_back(seq);
    if (!slot.now) {
      if (was == Place::nowhere) continue;
      erased.push_back(seq);
      if (was == Place::row) erased_rows.push_back(seq);
      if (was == Place::outcome) erased_outcomes.push_back(seq);
      continue;
    }
    const Run& run = *slot.now;
    has_queued_ |= run.as<Queued>() && run.origin == Origin::enqueued && run.waiting_for == 0;
    if (const auto deadline = next_deadline(run))
      first_deadline_ = std::min(*deadline, first_deadline_.value_or(*deadline));
    if (was == Place::nowhere) {
      made.push_back(&run);
      made_heads_.push_back(run.head);
    }
    if (was == Place::row) {
      rows.push_back(&run);
      slot.stored = Place::row;
      continue;
    }
    if (was == Place::outcome) {
      if (is_plain_outcome(run)) {
        slot.stored = Place::outcome;  // an outcome never changes
        continue;
      }
      erased_outcomes.push_back(seq);
    }
    if (auto block = block_of(run)) {
      put_piece(pieces, std::move(*block));
      slot.stored = Place::block;
    } else if (is_plain_outcome(run)) {
      outcomes.push_back(&run);
      slot.stored = Place::outcome;
    } else {
      new_rows.push_back(&run);
      slot.stored = Place::row;
    }
  }

  if (!made.empty()) writes.push_back(insert_heads(made));
  if (!outcomes.empty()) writes.push_back(insert_outcomes(outcomes));
  if (!new_rows.empty()) writes.push_back(insert_states(new_rows));
  if (!rows.empty()) writes.push_back(update_states(rows));
  put_delete(writes, sql().erase_states, erased_rows);
  put_delete(writes, sql().erase_runs, erased);
  put_delete(writes, sql().erase_settlements, erased);
  put_delete(writes, sql().erase_duplicates, erased);
  if (!erased_outcomes.empty()) put_fewer_outcomes(writes, erased_outcomes);

  std::vector<Seq> ended;
  for (const auto& [lo, seqs] : gone) {
    put_rest(blocks_.at(lo), seqs, pieces);
    ended.push_back(lo);
  }
  std::vector<Block> new_blocks, blocks;
  for (Block& piece : join_pieces(std::move(pieces)))
    (gone.contains(piece.lo) ? blocks : new_blocks).push_back(std::move(piece));
  for (const Seq lo : ended) blocks_.erase(lo);
  for (const Block& block : blocks) std::erase(ended, block.lo);
  put_delete(writes, sql().erase_blocks, ended);
  BlockColumns updated, inserted;
  if (!blocks.empty()) writes.push_back(bulk_of(updated, blocks).update("latchkey.blocks"));
  if (!new_blocks.empty()) writes.push_back(bulk_of(inserted, new_blocks).insert_into("latchkey.blocks"));
  for (Block& block : blocks) load_block(std::move(block));
  for (Block& block : new_blocks) load_block(std::move(block));
}

void PgTables::remember_heads() {
  for (const auto& head : made_heads_) heads_.add(head);
  for (const Seq seq : done_) heads_.forget(seq);
}

// In the order of the hashes, as every batch does: two that want the same keys wait for each other one way only.
void PgTables::put_key_writes(std::vector<Statement>& writes) {
  std::vector<Uuid> changed;
  for (const auto& [key, slot] : keys_)
    if (slot.is_changed) changed.push_back(key);
  std::ranges::sort(changed);
  Column made{Type::uuid}, of{Type::text}, made_seq{Type::int8}, moved{Type::uuid}, moved_seq{Type::int8},
      erased{Type::uuid};
  for (const Uuid& hash : changed) {
    KeySlot& slot = keys_.at(hash);
    slot.is_changed = false;
    slot.is_held = true;
    if (slot.now && !slot.stored) {
      if (new_keys_) new_keys_->emplace_back(hash, slot.tenant);
      made.add(hash);
      of.add(slot.tenant);
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
    writes.push_back(Bulk{{{"hash", &made}, {"tenant", &of}, {"seq", &made_seq}}}.insert_into("latchkey.keys"));
  if (moved.size() > 0) writes.push_back({sql().move_keys, Params().add(moved).add(moved_seq)});
  if (erased.size() > 0) writes.push_back({sql().erase_keys, Params().add(erased)});
}

void PgTables::put_wait_writes(std::vector<Statement>& writes) {
  Column added_to{Type::int8}, added{Type::int8}, added_id{Type::uuid}, removed_from{Type::int8}, removed{Type::int8};
  for (const auto& [edge, is_added] : wait_changes_) {
    (is_added ? added_to : removed_from).add(edge.first);
    (is_added ? added : removed).add(seq_in(edge.second));
    if (is_added) added_id.add(edge.second);
  }
  wait_changes_.clear();
  Column forgotten{Type::int8};
  for (const auto& [dependent, all] : waits_forgotten_) forgotten.add(seq_in(dependent));
  waits_forgotten_.clear();
  if (forgotten.size() > 0) writes.push_back({sql().remove_waits_of, Params().add(forgotten)});
  if (removed.size() > 0) writes.push_back({sql().remove_waits, Params().add(removed_from).add(removed)});
  if (added.size() > 0) writes.push_back({sql().add_waits, Params().add(added_to).add(added).add(added_id)});
}

void PgTables::put_letter_writes(std::vector<Statement>& writes) {
  for (auto& [name, slot] : letters_) {
    if (!std::exchange(slot.is_changed, false)) continue;
    if (!slot.stored && new_letters_) new_letters_->insert_or_assign(name, *slot.now);
    written_letters_.push_back(name);
    // The unique index of open letters judges: another host may have opened one meanwhile.
    writes.push_back(slot.stored ? update_letter(*slot.now) : insert_letter(*slot.now));
    slot.stored = slot.now;
  }
}

// Letters that were read and have no members then go, too.
void PgTables::put_member_deletes(std::vector<Statement>& writes) {
  std::vector<Seq> runs;
  std::set<Seq> letters;
  for (const auto& [seq, of] : erased_members_) {
    runs.push_back(seq);
    letters.insert(of.begin(), of.end());
  }
  erased_members_.clear();
  if (runs.empty()) return;
  put_delete(writes, sql().erase_members, runs);
  put_delete(writes, sql().erase_steps, runs);
  writes.push_back({sql().erase_empty_letters, Params().add(column_of({letters.begin(), letters.end()}))});
}

}  // namespace latchkey::pg
