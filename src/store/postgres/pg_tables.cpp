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
void Counters::give_back(std::uint64_t drawn) {
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

// It draws its fences anew: each time twice as many as were there for it, until all that it takes has one.
void PgTables::undo_command() {
  needs_.fences += 2 * fences_drawn_;
  undo_to(0, 0);
  changed_ = changed_before_;
}

// --- what was read --------------------------------------------------------------------------------------------------

void PgTables::load_peeked(const Uuid& key, Run run) {
  const Seq seq = seq_in(run.id());
  has_met_keys_ = true;
  heads_.add(run.head);
  keys_.insert_or_assign(key, KeySlot{.stored = seq, .now = seq});
  runs_.try_emplace(seq, RunSlot{.now = std::move(run), .stored = Place::peeked});
}

void PgTables::load_held_key(const Uuid& key, std::optional<Seq> seq) {
  keys_.insert_or_assign(key, KeySlot{.stored = seq, .now = seq, .is_changed = false, .is_held = true});
}

void PgTables::load_existing_key(const Uuid& key) {
  if (!keys_.at(key).stored) busy_keys_.insert(key);
}

// An outcome is not locked: it may have been purged before its head was read.
bool PgTables::is_loaded(Seq seq) const {
  return find_block(seq) || rows_.contains(seq) || (outcomes_.contains(seq) && own_heads_.contains(seq));
}

void PgTables::end_load(const std::vector<Seq>& runs) {
  for (const Seq seq : runs) {
    const auto known = runs_.find(seq);
    if (known != runs_.end() && known->second.stored != Place::peeked) continue;
    runs_.erase(seq);
    if (is_loaded(seq)) continue;
    // It exists, and lies in a row that somebody holds, or made a moment ago. Or it was here once and is purged.
    const bool exists = own_heads_.contains(seq);
    heads_.forget(seq);
    (exists ? busy_ : absent_).insert(seq);
  }
}

// Who asked by its key, and is told how it stands, need not wait for it. Who wants more finds it Held.
void PgTables::end_load_held(const std::vector<Seq>& runs) {
  std::vector<Seq> others;
  for (const Seq seq : runs) {
    const auto known = runs_.find(seq);
    const bool is_seen = known != runs_.end() && known->second.stored == Place::peeked && !is_loaded(seq);
    if (is_seen) {
      seen_only_.insert(seq);
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

// Puts a run together from what was read; null when that is not enough.
PgTables::RunSlot* PgTables::find_slot(Seq seq) {
  if (const auto at = runs_.find(seq); at != runs_.end()) return &at->second;
  if (busy_.contains(seq)) throw LockContended{};
  if (absent_.contains(seq)) return &runs_[seq];
  const Block* block = find_block(seq);
  const auto row = rows_.find(seq);
  const auto outcome = outcomes_.find(seq);
  if (!block && row == rows_.end() && outcome == outcomes_.end()) {
    needs_.runs.insert(seq);
    return nullptr;
  }
  const auto own = own_heads_.find(seq);
  auto head = own != own_heads_.end() ? own->second : heads_.find(seq);
  if (!head) {
    needs_.heads.insert(seq);
    return nullptr;
  }
  RunSlot& slot = runs_[seq];
  if (block) {
    slot = {run_of(std::move(head), *block), Place::block};
  } else if (row != rows_.end()) {
    slot = {with_head(row->second, std::move(head)), Place::row};
  } else {
    slot = {run_of(std::move(head), outcome->second), Place::outcome};
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

// A key is found without being locked, as most repeats change nothing. One that does must know that the key still
// belongs to that run, and that nobody changes either meanwhile.
void PgTables::hold_peeked() {
  if (peeked_.empty()) return;
  for (const Uuid& key : peeked_) {
    needs_.keys_for_update.insert(key);
    const auto& seq = keys_.at(key).now;
    if (seq && seen_only_.contains(*seq)) throw LockContended{};
    if (seq) needs_.runs.insert(*seq);
  }
  throw NeedsRead{};
}

void PgTables::set_run(Seq seq, std::optional<Run> run) {
  if (const auto known = runs_.find(seq); known != runs_.end() && known->second.stored == Place::peeked) {
    if (seen_only_.contains(seq)) throw LockContended{};
    needs_.runs.insert(seq);
    throw NeedsRead{};
  }
  hold_peeked();
  changed_ = true;
  const auto [at, is_new] = runs_.try_emplace(seq);
  RunSlot& slot = at->second;
  const Place stored = slot.stored;
  undo_runs_.emplace_back(seq, is_new ? std::nullopt : std::optional(std::move(slot)));
  slot = {std::move(run), stored, true};
  changed_runs_.insert(seq);
}

void PgTables::set_key(const RunHead& head, std::optional<Seq> seq) {
  const Uuid name = name_key(head.key_hash);
  remember(keys_, name);
  KeySlot& slot = keys_[name];
  const bool is_new = seq && !slot.now && !slot.stored;
  has_unprobed_key_ |= is_new && left_keys_ && left_keys_->is_quarantined(name, head.tenant, left_at_);
  slot.now = seq;
  slot.is_changed = true;
  slot.tenant = head.tenant;
}

// Heads are read without a lock: whose it is, and whether it is the one that was meant, is known whoever holds it.
bool PgTables::is_locked_foreign_run(RunId id, const std::string& tenant) {
  const Seq seq = seq_in(id);
  if (!busy_.contains(seq)) return false;
  const RunHead& head = *own_heads_.at(seq);
  return head.id != id || head.tenant != tenant;
}

std::optional<Run> PgTables::find(RunId id) {
  const RunSlot& slot = slot_of(seq_in(id));
  // Who asks by id may go by what it finds without writing to it.
  if (slot.stored == Place::peeked) {
    if (seen_only_.contains(seq_in(id))) throw LockContended{};
    needs_.runs.insert(seq_in(id));
    throw NeedsRead{};
  }
  return slot.now && slot.now->id() == id ? slot.now : std::nullopt;
}

std::optional<Run> PgTables::find_latest(const KeyName& name) {
  const Uuid key = name_key(name.hash);
  if (busy_keys_.contains(key) || (left_keys_ && left_keys_->is_held(key))) throw LockContended{};
  const auto at = keys_.find(key);
  if (at == keys_.end()) {
    needs_.keys_snapshot.insert(key);
    throw NeedsRead{};
  }
  read_own_writes_ |= at->second.is_changed || at->second.is_guessed;
  if (!at->second.now) return std::nullopt;
  if (!at->second.is_held && !at->second.is_changed) peeked_.insert(key);
  const RunSlot& slot = slot_of(*at->second.now);
  if (at->second.is_held && slot.stored == Place::peeked) {
    needs_.runs.insert(*at->second.now);
    throw NeedsRead{};
  }
  const auto& run = slot.now;
  // A key goes with its run. Only where nobody can have moved either is one without the other believed.
  if (!run && !at->second.is_held) throw LockContended{};
  if (!run) return std::nullopt;
  const RunHead& head = *run->head;
  if ((!head.by_call && head.key != name.key) || head.tenant != name.tenant || head.function != name.function)
    throw TablesError(Code::STORE_UNAVAILABLE, "two keys have one hash");
  return run;
}

RunId PgTables::next_id(Instant now) {
  const auto counter = counters_.next();
  if (!counter) {
    needs_.counters += 1;
    throw NeedsRead{};
  }
  // What is applied again would lack as many again, and needs these, too: others may take them meanwhile.
  undo_.emplace_back([this, drawn = *counter] {
    counters_.give_back(drawn);
    needs_.counters += 1;
  });
  return make_uuid_v7(now, *counter, random_.next());
}

Fence PgTables::peek_fence() {
  const auto fence = fences_.peek();
  if (!fence) throw NeedsRead{};  // every look draws new ones
  return Fence{*fence};
}
void PgTables::draw_fence() {
  fences_.next();
  fences_drawn_ += 1;
}

void PgTables::insert(const Run& run) {
  const Seq seq = seq_in(run.id());
  set_run(seq, run);
  note_waits_known(seq, seq);
  if (run.head->guarded()) set_key(*run.head, seq);
}

void PgTables::update(const Run& before, const Run& after) {
  set_run(seq_in(after.id()), after);  // first: it asks for the lock
  if (before.is_open() && after.is_settled()) note_settlement(after);
}

void PgTables::note_settlement(const Run& run) {
  const Seq seq = seq_in(run.id());
  const auto question = [&] {
    return Statement{sql().find_settlement, Params().add(seq).add(std::int64_t{run.generation})};
  };
  if (checks_settlements_ &&
      !ask("settlement of:" + std::to_string(seq) + "/" + std::to_string(run.generation), question).empty())
    throw StateConflict{};
  settled_.emplace_back(seq, run.generation);
  undo_.emplace_back([this] { settled_.pop_back(); });
}

void PgTables::set_latest_run_of_key(const Run& run) { set_key(*run.head, seq_in(run.id())); }

void PgTables::erase(const Run& run) {
  const Seq seq = seq_in(run.id());
  if (run.head->guarded()) {
    const Uuid name = name_key(run.head->key_hash);
    if (busy_keys_.contains(name)) throw LockContended{};
    const auto key = keys_.find(name);
    if (key == keys_.end() || !(key->second.is_held || key->second.is_changed)) {
      needs_.keys_for_update.insert(name);
      throw NeedsRead{};
    }
    if (key->second.now == seq) set_key(*run.head, std::nullopt);
  }
  set_run(seq, std::nullopt);
}

// --- questions and writes of their own ------------------------------------------------------------------------------

const Rows& PgTables::ask(const std::string& name, const std::function<Statement()>& question) {
  read_own_writes_ = true;  // it may be asked behind what was written before
  const auto known = answers_.find(name);
  if (known != answers_.end() && !written_before_) return known->second;
  needs_.questions.emplace_back(name, question());
  throw NeedsRead{};
}

// By default nobody is waited for: the whole batch would be.
const Rows& PgTables::query_for_update(const std::string& name, const std::function<Statement()>& question) {
  const auto with = [&](const char* lock) {
    return [&question, lock] {
      Statement statement = question();
      statement.sql += lock;
      return statement;
    };
  };
  if (in_turn_) return ask(name + "/in turn", with(" FOR UPDATE"));
  const Rows& rows = ask(name, with(" FOR UPDATE SKIP LOCKED"));
  if (rows.empty() && !ask(name + "/there", question).empty()) throw LockContended{};
  return rows;
}

void PgTables::write(Statement statement) {
  changed_ = true;
  own_writes_.push_back(std::move(statement));
  undo_.emplace_back([this] { own_writes_.pop_back(); });
}

}  // namespace latchkey::pg
