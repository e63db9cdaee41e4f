#include "store/postgres/pg_tables.hpp"

#include <algorithm>
#include <tuple>

#include "base/assert.hpp"

namespace latchkey::pg {

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
void Counters::add(std::uint64_t first) { ranges_.emplace_back(first, first + kDrawn); }

void PgTables::undo_command() {
  for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
  for (; !undo_runs_.empty(); undo_runs_.pop_back()) {
    auto& [seq, before] = undo_runs_.back();
    if (before) {
      runs_[seq] = std::move(*before);
    } else {
      runs_.erase(seq);
    }
  }
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

void PgTables::end_load(const std::vector<Seq>& runs) {
  for (const Seq seq : runs) {
    const auto known = runs_.find(seq);
    if (known != runs_.end() && known->second.stored != Place::peeked) continue;
    runs_.erase(seq);
    // An outcome is not locked: it may have been purged before its head was read.
    if (find_block(seq) || rows_.contains(seq) || (outcomes_.contains(seq) && own_heads_.contains(seq))) continue;
    // It exists, and lies in a row that somebody holds, or made a moment ago. Or it was here once and is purged.
    const bool exists = own_heads_.contains(seq);
    heads_.forget(seq);
    (exists ? busy_ : absent_).insert(seq);
  }
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
  if (busy_.contains(seq)) throw Held{};
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
  if (!slot) throw Missing{};
  return *slot;
}

void PgTables::need_all(const std::vector<Seq>& seqs) {
  bool all = true;
  for (const Seq seq : seqs) all &= find_slot(seq) != nullptr;
  if (!all) throw Missing{};
}

// --- runs and keys --------------------------------------------------------------------------------------------------

// A key is found without being locked, as most repeats change nothing. One that does must know that the key still
// belongs to that run, and that nobody changes either meanwhile.
void PgTables::hold_peeked() {
  if (peeked_.empty()) return;
  for (const Uuid& key : peeked_) {
    needs_.held_keys.insert(key);
    if (const auto& seq = keys_.at(key).now) needs_.runs.insert(*seq);
  }
  throw Missing{};
}

void PgTables::set_run(Seq seq, std::optional<Run> run) {
  if (const auto known = runs_.find(seq); known != runs_.end() && known->second.stored == Place::peeked) {
    needs_.runs.insert(seq);
    throw Missing{};
  }
  hold_peeked();
  changed_ = true;
  const auto [at, is_new] = runs_.try_emplace(seq);
  RunSlot& slot = at->second;
  const Place stored = slot.stored;
  undo_runs_.emplace_back(seq, is_new ? std::nullopt : std::optional(std::move(slot)));
  slot = {std::move(run), stored, true};
}

void PgTables::set_key(const RunHead& head, std::optional<Seq> seq) {
  const Uuid name = name_key(head.key_hash);
  remember(keys_, name);
  KeySlot& slot = keys_[name];
  slot.now = seq;
  slot.is_changed = true;
  slot.tenant = head.tenant;
}

std::optional<Run> PgTables::find(RunId id) {
  const RunSlot& slot = slot_of(seq_in(id));
  // Who asks by id may go by what it finds without writing to it.
  if (slot.stored == Place::peeked) {
    needs_.runs.insert(seq_in(id));
    throw Missing{};
  }
  return slot.now && slot.now->id() == id ? slot.now : std::nullopt;
}

std::optional<Run> PgTables::find_latest(const KeyName& name) {
  const Uuid key = name_key(name.hash);
  if (busy_keys_.contains(key)) throw Held{};
  const auto at = keys_.find(key);
  if (at == keys_.end()) {
    needs_.keys.insert(key);
    throw Missing{};
  }
  if (!at->second.now) return std::nullopt;
  if (!at->second.is_held && !at->second.is_changed) peeked_.insert(key);
  const RunSlot& slot = slot_of(*at->second.now);
  if (at->second.is_held && slot.stored == Place::peeked) {
    needs_.runs.insert(*at->second.now);
    throw Missing{};
  }
  const auto& run = slot.now;
  // A key goes with its run. Only where nobody can have moved either is one without the other believed.
  if (!run && !at->second.is_held) throw Held{};
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
    throw Missing{};
  }
  return make_uuid_v7(now, *counter, random_.next());
}

Fence PgTables::peek_fence() {
  if (fence_ == fence_end_) throw Missing{};  // every look draws new ones
  return Fence{fence_};
}

void PgTables::insert(const Run& run) {
  const Seq seq = seq_in(run.id());
  set_run(seq, run);
  note_waits_known(seq, seq);
  if (run.head->guarded()) set_key(*run.head, seq);
}

void PgTables::update(const Run&, const Run& after) { set_run(seq_in(after.id()), after); }

void PgTables::point_key(const Run& run) { set_key(*run.head, seq_in(run.id())); }

void PgTables::erase(const Run& run) {
  const Seq seq = seq_in(run.id());
  if (run.head->guarded()) {
    const Uuid name = name_key(run.head->key_hash);
    if (busy_keys_.contains(name)) throw Held{};
    const auto key = keys_.find(name);
    if (key == keys_.end() || !(key->second.is_held || key->second.is_changed)) {
      needs_.held_keys.insert(name);
      throw Missing{};
    }
    if (key->second.now == seq) set_key(*run.head, std::nullopt);
  }
  set_run(seq, std::nullopt);
  Column erased{Type::int8};
  erased.add(seq);
  write({"DELETE FROM latchkey.duplicates WHERE seq = ANY($1)", Params().add(erased)});
}

// --- by time --------------------------------------------------------------------------------------------------------

void PgTables::load_ready(const ReadyName& name, std::vector<ReadyItem> items, bool are_all) {
  std::ranges::sort(items, [](const ReadyItem& a, const ReadyItem& b) {
    return std::tie(b.priority, a.due_at, a.lo) < std::tie(a.priority, b.due_at, b.lo);
  });
  ready_[name] = {std::move(items), are_all};
}

std::vector<RunId> PgTables::ready(const TakeRequest& request, Instant now) {
  const ReadyName name{request.tenant, request.functions};
  const auto list = ready_.find(name);
  if (list == ready_.end()) {
    needs_.ready[name].count += request.limit;
    throw Missing{};
  }
  const auto& [items, are_all] = list->second;
  // Another take of this batch may have had it.
  const auto may_be_ready = [&](Seq seq) {
    const auto known = runs_.find(seq);
    if (known == runs_.end()) return true;
    const auto& run = known->second.now;
    const auto* queued = run ? run->as<Queued>() : nullptr;
    return queued && run->waiting_for == 0 && queued->due_at <= now;
  };
  std::vector<Seq> found;
  for (const ReadyItem& item : items)
    for (Seq seq = item.lo; seq <= item.hi && found.size() < request.limit; ++seq)
      if (may_be_ready(seq)) found.push_back(seq);
  if (found.size() < request.limit && !are_all) {
    ReadyWish& wish = needs_.ready[name];
    wish.count += request.limit;
    wish.is_second = true;
    throw Missing{};
  }
  need_all(found);
  std::vector<RunId> ids;
  for (const Seq seq : found)
    if (const auto& run = slot_of(seq).now; run && may_be_ready(seq)) ids.push_back(run->id());
  return ids;
}

std::vector<RunId> PgTables::overdue(Instant now, std::uint32_t limit) {
  if (!overdue_) {
    needs_.overdue = std::max(needs_.overdue, limit);
    throw Missing{};
  }
  std::vector<Seq> found;
  for (const ReadyItem& item : *overdue_)
    for (Seq seq = item.lo; seq <= item.hi && found.size() < limit; ++seq) {
      const auto known = runs_.find(seq);
      if (known == runs_.end() || (known->second.now && known->second.now->is_open())) found.push_back(seq);
    }
  need_all(found);
  std::vector<RunId> ids;
  for (const Seq seq : found) {
    const auto& run = slot_of(seq).now;
    const auto deadline = run ? next_deadline(*run) : std::nullopt;
    if (deadline && *deadline <= now) ids.push_back(run->id());
  }
  return ids;
}

// The mark is a sequence: it is kept even when the slice is not, which only means that these are looked at later.
PurgeSlice PgTables::purge_candidates(Instant made_by, std::uint32_t limit) {
  const Rows& rows = ask("purge:" + std::to_string(limit), [&] {
    return Statement{
        "SELECT r.seq, r.created_at, (SELECT bool_or((SELECT l.acknowledged_at IS NULL FROM latchkey.dead_letters l "
        "WHERE l.number = m.letter)) FROM latchkey.dead_letter_members m WHERE m.seq = r.seq) FROM "
        "latchkey.runs r WHERE r.seq > (SELECT last_value FROM latchkey.purged) ORDER BY r.seq LIMIT $1",
        Params().add(std::int64_t{limit})};
  });
  // In the order of their counters, which is nearly that of time: a whole slice of younger ones is the end.
  std::vector<Seq> found;
  for (int row = 0; row < rows.size(); ++row) {
    if (rows.integer(row, 1) > to_ms(made_by)) continue;
    found.push_back(rows.integer(row, 0));
    unread_.try_emplace(found.back(), rows.boolean(row, 2));
  }
  const bool is_end = rows.size() < static_cast<int>(limit) || found.empty();
  std::erase_if(found, [&](Seq seq) { return busy_.contains(seq); });  // the next round's
  need_all(found);
  PurgeSlice slice;
  slice.more = limit > 0 && !is_end;
  for (const Seq seq : found) {
    const auto& run = slot_of(seq).now;
    if (run && run->is_settled()) slice.runs.push_back(*run);
  }
  write({"SELECT setval('latchkey.purged', $1)", Params().add(slice.more ? rows.integer(rows.size() - 1, 0) : 0)});
  return slice;
}

// --- waits ----------------------------------------------------------------------------------------------------------

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
    throw Missing{};
  }
  const auto at = waits_.find(seq);
  if (at == waits_.end()) return {};
  return {at->second.begin(), at->second.end()};
}

// --- questions and writes of their own ------------------------------------------------------------------------------

const Rows& PgTables::ask(const std::string& name, const std::function<Statement()>& question) {
  const auto known = answers_.find(name);
  if (known != answers_.end() && !written_before_) return known->second;
  needs_.questions.emplace_back(name, question());
  throw Missing{};
}

// By default nobody is waited for: the whole batch would be.
const Rows& PgTables::ask_locked(const std::string& name, const std::function<Statement()>& question) {
  const auto with = [&](const char* lock) {
    return [&question, lock] {
      Statement statement = question();
      statement.sql += lock;
      return statement;
    };
  };
  if (in_turn_) return ask(name + "/in turn", with(" FOR UPDATE"));
  const Rows& rows = ask(name, with(" FOR UPDATE SKIP LOCKED"));
  if (rows.empty() && !ask(name + "/there", question).empty()) throw Held{};
  return rows;
}

void PgTables::write(Statement statement) {
  changed_ = true;
  own_writes_.push_back(std::move(statement));
  undo_.emplace_back([this] { own_writes_.pop_back(); });
}

}  // namespace latchkey::pg
