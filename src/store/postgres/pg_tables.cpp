// PgTables: counters, loading of rows, runs, keys and queries.
#include "store/postgres/pg_tables.hpp"

#include "store/postgres/statements.hpp"

namespace latchkey::pg {

std::optional<std::uint64_t> Counters::peek() const {
  return ranges_.empty() ? std::nullopt : std::optional(ranges_.front().first);
}
std::optional<std::uint64_t> Counters::next() {
  if (ranges_.empty()) return std::nullopt;
  const std::uint64_t value = ranges_.front().first++;
  if (ranges_.front().first == ranges_.front().second) ranges_.erase(ranges_.begin());
  return value;
}
std::size_t Counters::left() const {
  std::size_t left = 0;
  for (const auto& [next, end] : ranges_) left += end - next;
  return left;
}
void Counters::put_back(std::uint64_t drawn) {
  if (ranges_.empty() || ranges_.front().first != drawn + 1) ranges_.insert(ranges_.begin(), {drawn + 1, drawn + 1});
  ranges_.front().first = drawn;
}
void Counters::add(std::uint64_t first) { ranges_.emplace_back(first, first + kDrawn); }

void PgTables::undo_to(std::size_t steps, std::size_t runs) {
  for (; undo_.size() > steps; undo_.pop_back()) undo_.back()();
  for (; undo_runs_.size() > runs; undo_runs_.pop_back()) {
    auto& [seq, before] = undo_runs_.back();
    if (before) {
      runs_[seq] = std::move(*before);
    } else {
      runs_.erase(seq);
    }
  }
}

// The command draws its fences again. Request twice as many each time, until every job that it takes has one.
void PgTables::undo_command() {
  read_set_.fences += 2 * fences_drawn_;
  undo_to(0, 0);
  changed_ = changed_before_;
}

// --- rows that were read --------------------------------------------------------------------------------------------

void PgTables::load_peeked(const Uuid& key, Run run) {
  const Seq seq = seq_in(run.id());
  has_found_keys_ = true;
  heads_.add(run.head);
  keys_.insert_or_assign(key, KeySlot{.stored = seq, .now = seq});
  runs_.try_emplace(seq, RunSlot{.now = std::move(run), .stored = StoredIn::peeked});
}

void PgTables::load_locked_key(const Uuid& key, std::optional<Seq> seq) {
  keys_.insert_or_assign(key, KeySlot{.stored = seq, .now = seq, .is_changed = false, .is_locked = true});
}

void PgTables::load_existing_key(const Uuid& key) {
  if (!keys_.at(key).stored) contended_keys_.insert(key);
}

// Outcomes are not locked: one may have been purged before its head was read.
bool PgTables::is_loaded(Seq seq) const {
  return find_block(seq) || rows_.contains(seq) || (outcomes_.contains(seq) && own_heads_.contains(seq));
}

void PgTables::end_load(const std::vector<Seq>& runs) {
  for (const Seq seq : runs) {
    const auto known = runs_.find(seq);
    if (known != runs_.end() && known->second.stored != StoredIn::peeked) continue;
    runs_.erase(seq);
    if (is_loaded(seq)) continue;
    // If the head is known, the row is locked or was inserted after our read. Or the cached head is of a purged run:
    // forget it, so that the retry finds that out.
    const bool exists = own_heads_.contains(seq);
    heads_.forget(seq);
    (exists ? contended_ : absent_).insert(seq);
  }
}

// A command that found a contended run by its key and only reads it need not wait. Others get LockContended.
void PgTables::end_load_nowait(const std::vector<Seq>& runs) {
  std::vector<Seq> others;
  for (const Seq seq : runs) {
    const auto known = runs_.find(seq);
    const bool is_peeked = known != runs_.end() && known->second.stored == StoredIn::peeked && !is_loaded(seq);
    if (is_peeked) {
      peeked_contended_.insert(seq);
    } else {
      others.push_back(seq);
    }
  }
  end_load(others);
}

bool PgTables::pin_head(Seq seq) {
  if (own_heads_.contains(seq)) return true;
  auto head = heads_.find(seq);
  if (!head) return false;
  own_heads_.emplace(seq, std::move(head));
  return true;
}

const Block* PgTables::find_block(Seq seq) const {
  auto at = blocks_.upper_bound(seq);
  if (at == blocks_.begin()) return nullptr;
  --at;
  return at->second.contains(seq) ? &at->second : nullptr;
}

// Builds a run from the rows that were read. Returns null if rows are missing.
PgTables::RunSlot* PgTables::find_slot(Seq seq) {
  if (const auto at = runs_.find(seq); at != runs_.end()) return &at->second;
  if (contended_.contains(seq)) throw LockContended{};
  if (absent_.contains(seq)) return &runs_[seq];
  const Block* block = find_block(seq);
  const auto row = rows_.find(seq);
  const auto outcome = outcomes_.find(seq);
  if (!block && row == rows_.end() && outcome == outcomes_.end()) {
    read_set_.runs.insert(seq);
    return nullptr;
  }
  const auto own = own_heads_.find(seq);
  auto head = own != own_heads_.end() ? own->second : heads_.find(seq);
  if (!head) {
    read_set_.heads.insert(seq);
    return nullptr;
  }
  RunSlot& slot = runs_[seq];
  if (block) {
    slot = {run_of(std::move(head), *block), StoredIn::block};
  } else if (row != rows_.end()) {
    slot = {with_head(row->second, std::move(head)), StoredIn::row};
  } else {
    slot = {run_of(std::move(head), outcome->second), StoredIn::outcome};
  }
  return &slot;
}

PgTables::RunSlot& PgTables::slot_of(Seq seq) {
  RunSlot* slot = find_slot(seq);
  if (!slot) throw NeedsRead{};
  read_own_writes_ |= slot->is_changed;
  return *slot;
}

void PgTables::need_all(const std::vector<Seq>& seqs) {
  bool all = true;
  for (const Seq seq : seqs) all &= find_slot(seq) != nullptr;
  if (!all) throw NeedsRead{};
}

// --- runs and keys --------------------------------------------------------------------------------------------------

// Keys are read without a lock, because most repeats change nothing. Before a command writes, it locks its keys and
// their runs, so that no other transaction changes either of them.
void PgTables::lock_peeked_keys() {
  if (peeked_keys_.empty()) return;
  for (const Uuid& key : peeked_keys_) {
    read_set_.keys_for_update.insert(key);
    const auto& seq = keys_.at(key).now;
    if (seq && peeked_contended_.contains(*seq)) throw LockContended{};
    if (seq) read_set_.runs.insert(*seq);
  }
  throw NeedsRead{};
}

void PgTables::set_run(Seq seq, std::optional<Run> run) {
  if (const auto known = runs_.find(seq); known != runs_.end() && known->second.stored == StoredIn::peeked) {
    if (peeked_contended_.contains(seq)) throw LockContended{};
    read_set_.runs.insert(seq);
    throw NeedsRead{};
  }
  lock_peeked_keys();
  changed_ = true;
  const auto [at, is_new] = runs_.try_emplace(seq);
  RunSlot& slot = at->second;
  const StoredIn stored = slot.stored;
  undo_runs_.emplace_back(seq, is_new ? std::nullopt : std::optional(std::move(slot)));
  slot = {std::move(run), stored, true};
  changed_runs_.insert(seq);
}

void PgTables::set_key(const RunHead& head, std::optional<Seq> seq) {
  const Uuid name = name_key(head.key_hash);
  save_for_undo(keys_, name);
  KeySlot& slot = keys_[name];
  const bool is_new = seq && !slot.now && !slot.stored;
  has_unprobed_key_ |= is_new && contention_ && contention_->must_be_probed(name, head.tenant, contention_at_);
  slot.now = seq;
  slot.is_changed = true;
  slot.tenant = head.tenant;
}

// Heads are read without a lock, so the run's tenant is known although another transaction has locked the run.
bool PgTables::is_locked_foreign_run(RunId id, const std::string& tenant) {
  const Seq seq = seq_in(id);
  if (!contended_.contains(seq)) return false;
  const RunHead& head = *own_heads_.at(seq);
  return head.id != id || head.tenant != tenant;
}

std::optional<Run> PgTables::find(RunId id) {
  const RunSlot& slot = slot_of(seq_in(id));
  // A command that finds a run by its id may rely on its state without writing to it, so the run must be locked.
  if (slot.stored == StoredIn::peeked) {
    if (peeked_contended_.contains(seq_in(id))) throw LockContended{};
    read_set_.runs.insert(seq_in(id));
    throw NeedsRead{};
  }
  return slot.now && slot.now->id() == id ? slot.now : std::nullopt;
}

std::optional<Run> PgTables::find_latest(const KeyName& name) {
  const Uuid key = name_key(name.hash);
  if (contended_keys_.contains(key) || (contention_ && contention_->is_contended(key))) throw LockContended{};
  const auto at = keys_.find(key);
  if (at == keys_.end()) {
    read_set_.keys_snapshot.insert(key);
    throw NeedsRead{};
  }
  read_own_writes_ |= at->second.is_changed || at->second.is_assumed;
  if (!at->second.now) return std::nullopt;
  if (!at->second.is_locked && !at->second.is_changed) peeked_keys_.insert(key);
  const RunSlot& slot = slot_of(*at->second.now);
  if (at->second.is_locked && slot.stored == StoredIn::peeked) {
    read_set_.runs.insert(*at->second.now);
    throw NeedsRead{};
  }
  const auto& run = slot.now;
  // A key exists as long as its run. If only one of them was found, the result is trusted only under a lock.
  if (!run && !at->second.is_locked) throw LockContended{};
  if (!run) return std::nullopt;
  const RunHead& head = *run->head;
  if ((!head.by_call && head.key != name.key) || head.tenant != name.tenant || head.function != name.function)
    throw TablesError(Code::STORE_UNAVAILABLE, "two keys have the same hash");
  return run;
}

RunId PgTables::next_id(Instant now) {
  const auto counter = counters_.next();
  if (!counter) {
    read_set_.counters += 1;
    throw NeedsRead{};
  }
  // A command that is applied again needs the counters that it drew, too: other batches may draw them meanwhile.
  undo_.emplace_back([this, drawn = *counter] {
    counters_.put_back(drawn);
    read_set_.counters += 1;
  });
  return make_uuid_v7(now, *counter, random_.next());
}

Fence PgTables::peek_fence() {
  const auto fence = fences_.peek();
  if (!fence) throw NeedsRead{};  // every round trip draws new ones
  return Fence{*fence};
}
void PgTables::draw_fence() {
  fences_.next();
  fences_drawn_ += 1;
}

void PgTables::insert(const Run& run) {
  const Seq seq = seq_in(run.id());
  set_run(seq, run);
  note_dependents_known(seq, seq);
  if (run.head->guarded()) set_key(*run.head, seq);
}

void PgTables::update(const Run& before, const Run& after) {
  set_run(seq_in(after.id()), after);  // first, because it may throw NeedsRead for the lock
  if (before.is_open() && after.is_settled()) note_settlement(after);
}

void PgTables::note_settlement(const Run& run) {
  const Seq seq = seq_in(run.id());
  const auto statement = [&] {
    return Statement{sql().find_settlement, Params().add(seq).add(std::int64_t{run.generation})};
  };
  if (checks_settlements_ &&
      !query("settlement of:" + std::to_string(seq) + "/" + std::to_string(run.generation), statement).empty())
    throw StateConflict{};
  settled_.emplace_back(seq, run.generation);
  undo_.emplace_back([this] { settled_.pop_back(); });
}

void PgTables::set_latest_run_of_key(const Run& run) { set_key(*run.head, seq_in(run.id())); }

void PgTables::erase(const Run& run) {
  const Seq seq = seq_in(run.id());
  if (run.head->guarded()) {
    const Uuid name = name_key(run.head->key_hash);
    if (contended_keys_.contains(name)) throw LockContended{};
    const auto key = keys_.find(name);
    if (key == keys_.end() || !(key->second.is_locked || key->second.is_changed)) {
      read_set_.keys_for_update.insert(name);
      throw NeedsRead{};
    }
    if (key->second.now == seq) set_key(*run.head, std::nullopt);
  }
  set_run(seq, std::nullopt);
}

// --- queries and writes of rare data --------------------------------------------------------------------------------

const Rows& PgTables::query(const std::string& name, const std::function<Statement()>& make_statement) {
  read_own_writes_ = true;  // the query may run after writes of this batch
  const auto known = results_.find(name);
  if (known != results_.end() && !written_before_) return known->second;
  read_set_.queries.emplace_back(name, make_statement());
  throw NeedsRead{};
}

// By default it does not wait for the lock, because the whole batch would wait.
const Rows& PgTables::query_for_update(const std::string& name, const std::function<Statement()>& make_statement) {
  const auto with = [&](const char* lock) {
    return [&make_statement, lock] {
      Statement statement = make_statement();
      statement.sql += lock;
      return statement;
    };
  };
  if (blocks_on_row_locks_) return query(name + "/blocking", with(" FOR UPDATE"));
  const Rows& rows = query(name, with(" FOR UPDATE SKIP LOCKED"));
  if (rows.empty() && !query(name + "/exists", make_statement).empty()) throw LockContended{};
  return rows;
}

void PgTables::write(Statement statement) {
  changed_ = true;
  own_writes_.push_back(std::move(statement));
  undo_.emplace_back([this] { own_writes_.pop_back(); });
}

}  // namespace latchkey::pg
