#include "store/postgres/pg_tables.hpp"

#include <algorithm>

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
}

// --- runs and keys --------------------------------------------------------------------------------------------------

void PgTables::load_run(Run run, bool has_dependents) {
  const Seq seq = seq_of(run.id());
  if (!has_dependents) waits_.try_emplace(seq);
  RunSlot slot{run, run};
  runs_.insert_or_assign(seq, std::move(slot));
}

void PgTables::load_no_run(Seq seq) { runs_.insert_or_assign(seq, RunSlot{}); }

PgTables::RunSlot& PgTables::slot_of(Seq seq) {
  const auto at = runs_.find(seq);
  if (at != runs_.end()) return at->second;
  needs_.runs.insert(seq);
  throw Missing{};
}

void PgTables::set_run(Seq seq, std::optional<Run> run) {
  remember(runs_, seq);
  RunSlot& slot = runs_[seq];
  slot.now = std::move(run);
  slot.is_changed = true;
}

void PgTables::set_key(const RunHead& head, std::optional<Seq> seq) {
  remember(keys_, head.key_hash);
  auto& slot = keys_[head.key_hash];
  slot.now = seq;
  slot.is_changed = true;
  tenants_[head.key_hash] = head.tenant;
}

std::optional<Run> PgTables::find(RunId id) {
  const auto& run = slot_of(seq_of(id)).now;
  return run && run->id() == id ? run : std::nullopt;
}

std::optional<Run> PgTables::find_latest(const KeyName& name) {
  const auto at = keys_.find(name.hash);
  if (at == keys_.end()) {
    needs_.keys.insert(name.hash);
    throw Missing{};
  }
  if (!at->second.now) return std::nullopt;
  const auto& run = slot_of(*at->second.now).now;
  if (!run) return std::nullopt;
  const RunHead& head = *run->head;
  LK_ASSERT((head.by_call || head.key == name.key) && head.tenant == name.tenant && head.function == name.function);
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
  if (fence_ == fence_end_) {
    needs_.fences = true;
    throw Missing{};
  }
  return Fence{fence_};
}

void PgTables::insert(const Run& run) {
  const Seq seq = seq_of(run.id());
  set_run(seq, run);
  waits_.try_emplace(seq);
  if (run.head->guarded()) set_key(*run.head, seq);
}

void PgTables::update(const Run&, const Run& after) { set_run(seq_of(after.id()), after); }

void PgTables::point_key(const Run& run) { set_key(*run.head, seq_of(run.id())); }

void PgTables::erase(const Run& run) {
  const Seq seq = seq_of(run.id());
  set_run(seq, std::nullopt);
  Column erased{Type::int8};
  erased.add(seq);
  write({"DELETE FROM latchkey.duplicates WHERE seq = ANY($1)", Params().add(erased)});
  if (!run.head->guarded()) return;
  const auto key = keys_.find(run.head->key_hash);
  if (key == keys_.end()) {
    needs_.keys.insert(run.head->key_hash);
    throw Missing{};
  }
  if (key->second.now == seq) set_key(*run.head, std::nullopt);
}

// --- by time --------------------------------------------------------------------------------------------------------

void PgTables::load_ready(const ReadyName& name, std::vector<Seq> seqs) { ready_[name] = std::move(seqs); }

std::vector<RunId> PgTables::ready(const TakeRequest& request, Instant now) {
  const ReadyName name{request.tenant, request.functions};
  const auto list = ready_.find(name);
  if (list == ready_.end()) {
    needs_.ready[name] += request.limit;
    throw Missing{};
  }
  std::vector<RunId> ids;
  for (const Seq seq : list->second) {
    if (ids.size() == request.limit) break;
    const auto& run = slot_of(seq).now;
    const auto* queued = run ? run->as<Queued>() : nullptr;
    // Another take of this batch may have had it.
    if (queued && run->waiting_for == 0 && queued->due_at <= now) ids.push_back(run->id());
  }
  return ids;
}

std::vector<RunId> PgTables::overdue(Instant now, std::uint32_t limit) {
  const Rows& rows = ask("overdue:" + std::to_string(limit), [&] {
    return Statement{std::string("SELECT ") + kRunColumns +
                         ", EXISTS (SELECT 1 FROM latchkey.waits w WHERE w.predecessor = r.seq) FROM latchkey.runs r "
                         "WHERE r.deadline <= $1 ORDER BY r.deadline LIMIT $2 FOR UPDATE OF r SKIP LOCKED",
                     Params().add(to_ms(now)).add(std::int64_t{limit})};
  });
  std::vector<RunId> ids;
  for (int row = 0; row < rows.size(); ++row) {
    const Seq seq = rows.integer(row, 0);
    if (!knows_run(seq)) load_run(read_run(rows, row), rows.boolean(row, kRunColumnCount));
    const auto& run = slot_of(seq).now;
    const auto deadline = run ? next_deadline(*run) : std::nullopt;
    if (deadline && *deadline <= now) ids.push_back(run->id());
  }
  return ids;
}

PurgeSlice PgTables::purge_candidates(Instant made_by, std::uint32_t limit) {
  const Rows& rows = ask("purge:" + std::to_string(purged_to) + ":" + std::to_string(limit), [&] {
    return Statement{
        std::string("SELECT ") + kRunColumns +
            ", EXISTS (SELECT 1 FROM latchkey.waits w WHERE w.predecessor = r.seq), "
            "EXISTS (SELECT 1 FROM latchkey.dead_letter_members m JOIN latchkey.dead_letters l ON l.number "
            "= m.letter WHERE m.seq = r.seq AND l.acknowledged_at IS NULL) FROM latchkey.runs r "
            "WHERE r.seq > $1 AND r.created_at <= $2 ORDER BY r.seq LIMIT $3 FOR UPDATE OF r SKIP LOCKED",
        Params().add(purged_to).add(to_ms(made_by)).add(std::int64_t{limit})};
  });
  PurgeSlice slice;
  slice.more = limit > 0 && rows.size() == static_cast<int>(limit);
  undo_.emplace_back([this, before = purged_to] { purged_to = before; });
  purged_to = slice.more ? rows.integer(rows.size() - 1, 0) : 0;
  for (int row = 0; row < rows.size(); ++row) {
    const Seq seq = rows.integer(row, 0);
    if (!knows_run(seq)) load_run(read_run(rows, row), rows.boolean(row, kRunColumnCount));
    unread_.try_emplace(seq, rows.boolean(row, kRunColumnCount + 1));
    const auto& run = slot_of(seq).now;
    if (run && run->is_settled()) slice.runs.push_back(*run);
  }
  return slice;
}

// --- waits ----------------------------------------------------------------------------------------------------------

void PgTables::add_wait(RunId predecessor, RunId dependent) {
  const Seq seq = seq_of(predecessor);
  remember(wait_changes_, {seq, dependent});
  wait_changes_[{seq, dependent}] = true;
  if (!waits_.contains(seq)) return;
  remember(waits_, seq);
  waits_[seq].insert(dependent);
}

void PgTables::remove_wait(RunId predecessor, RunId dependent) {
  const Seq seq = seq_of(predecessor);
  remember(wait_changes_, {seq, dependent});
  wait_changes_[{seq, dependent}] = false;
  if (!waits_.contains(seq)) return;
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
  const auto at = waits_.find(seq_of(predecessor));
  if (at == waits_.end()) {
    needs_.waits.insert(seq_of(predecessor));
    throw Missing{};
  }
  return {at->second.begin(), at->second.end()};
}

// --- questions and writes of their own ------------------------------------------------------------------------------

const Rows& PgTables::ask(const std::string& name, const std::function<Statement()>& question) {
  const auto known = answers_.find(name);
  if (known != answers_.end() && !written_before_) return known->second;
  needs_.questions.emplace_back(name, question());
  throw Missing{};
}

void PgTables::write(Statement statement) {
  changed_ = true;
  own_writes_.push_back(std::move(statement));
  undo_.emplace_back([this] { own_writes_.pop_back(); });
}

}  // namespace latchkey::pg
