// What somebody's open transaction holds up, known by itself: what wants it goes apart, and nothing else waits with it.
#include <algorithm>

#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

// --- keys that somebody is inserting --------------------------------------------------------------------------------

// As a whole: one that goes in parts leaves out what is held by itself.
bool PostgresStore::is_held(PgCommand& command) const {
  if (contended_keys_.empty() || command.manner == PgCommand::ReplyMode::per_request) return false;
  if (!command.keys) {
    ReadSet needs;
    command.plan(needs);
    needs.keys_snapshot.insert(needs.keys_assumed_new);
    command.keys = needs.keys_snapshot.sorted();
  }
  return std::ranges::any_of(*command.keys, [&](const Uuid& key) { return contended_keys_.contains(key); });
}

// Looks which of these are held: what wants one of them goes apart at once, and nothing else waits with it.
Task<bool> PostgresStore::find_held(Connection& connection, std::vector<TenantKey> keys, Duration most) {
  if (keys.empty()) co_return false;
  Column hashes{Type::uuid};
  for (const auto& [key, tenant] : keys) hashes.add(key);
  Connector::begin(connection);
  connection.add({sql().are_held, Params().add(hashes).add(most.count())});
  connection.add(sql().rollback);
  const auto results = co_await connection.run(settings_.reply_max);
  const Rows& seen = results[results.size() - 2];
  bool are_any = false;
  for (int row = 0; row < seen.size(); ++row) {
    contended_keys_.note(keys.at(static_cast<std::size_t>(row)), seen.boolean(row, 0), host_.elapsed());
    are_any |= seen.boolean(row, 0);
  }
  if (are_any) contended_wake_.ring();
  co_return are_any;
}

Task<void> PostgresStore::probe_contended(std::unique_ptr<Connection>& connection) {
  contended_keys_.tidy(host_.elapsed());
  std::map<LetterName, DeadLetter> letters;
  if (host_.elapsed() >= letters_seen_ + kDeadLetterProbeEvery) letters = contended_dead_letters_;
  if (contended_keys_.empty() && letters.empty()) co_return;
  try {
    if (!connection || connection->is_lost()) connection = co_await connect();
    co_await find_held(*connection, contended_keys_.next_held(kProbesPerTick), kProbeContendedLimit);
    co_await find_held(*connection, contended_keys_.next_unseen(kProbesPerTick), kProbeUnprobedLimit);
    if (!letters.empty()) co_await probe_contended_dead_letters(*connection, std::move(letters));
  } catch (const Failure&) {
    connection.reset();
  }
}

// --- runs that somebody has -----------------------------------------------------------------------------------------

// Those that are known to be held are passed over, or all that is in the batch would wait each time: what wants one
// goes apart. There each is waited for now and then, in turn with everybody else: what many have, one after the other,
// may be free at no moment at which it is merely looked at. One at a time: behind one that is held for long the next is
// not come to.
std::vector<Seq> PostgresStore::exclude_contended_runs(ReadSet& needs, const BatchExecution& execution) {
  const Duration now = host_.elapsed();
  if (now >= contended_runs_pruned_ + kPruneEvery) {
    contended_runs_pruned_ = now;
    std::erase_if(contended_runs_, [now](const auto& one) { return one.second.until <= now; });
  }
  if (contended_runs_.empty()) return execution.skips ? needs.runs.sorted() : std::vector<Seq>{};
  const std::vector<Seq> wanted = needs.runs.sorted();
  needs.runs = {};
  auto next = contended_runs_.end();
  for (const Seq seq : wanted) {
    const auto held = contended_runs_.find(seq);
    const bool is_held = held != contended_runs_.end() && held->second.until > now;
    (is_held ? needs.runs_nowait : needs.runs).insert(seq);
    const bool may_wait =
        is_held && execution.kind == WriterKind::contended && now - held->second.waited >= kLockWaitEvery;
    if (may_wait && (next == contended_runs_.end() || held->second.waited < next->second.waited)) next = held;
  }
  if (next == contended_runs_.end()) return wanted;
  next->second.waited = now;
  Wanted<Seq> others;
  for (const Seq seq : needs.runs_nowait.sorted()) (seq == next->first ? needs.runs : others).insert(seq);
  needs.runs_nowait = std::move(others);
  return wanted;
}

// What became of those that were wanted.
void PostgresStore::record_lock_results(const PgTables& tables, const std::vector<Seq>& wanted) {
  const Duration now = host_.elapsed();
  for (const Seq seq : wanted) {
    if (tables.is_held(seq)) {
      contended_runs_.try_emplace(seq, ContendedRun{.until = {}, .waited = now}).first->second.until =
          now + kContendedFor;
    } else {
      contended_runs_.erase(seq);
    }
  }
}

// --- dead letters that somebody is making ---------------------------------------------------------------------------

// Looks which of these are held, by making each and undoing that. Whether there are any.
Task<bool> PostgresStore::probe_contended_dead_letters(Connection& connection,
                                                       std::map<LetterName, DeadLetter> letters) {
  bool are_any = false;
  for (auto& [name, letter] : letters) {
    if (co_await probe_dead_letter_insert(connection, letter)) {
      contended_dead_letters_.insert_or_assign(name, std::move(letter));
      are_any = true;
    } else {
      contended_dead_letters_.erase(name);
    }
  }
  letters_seen_ = host_.elapsed();
  if (are_any) contended_wake_.ring();
  co_return are_any;
}

Task<bool> PostgresStore::probe_dead_letter_insert(Connection& connection, const DeadLetter& letter) {
  Connector::begin(connection);
  connection.add(sql().set_lock_timeout_1ms);
  connection.add(insert_letter(letter));
  std::optional<Failure> failure;
  try {
    co_await connection.run(settings_.reply_max);
  } catch (const Failure& found) {
    failure.emplace(found);
  }
  if (failure && failure->lost) throw *failure;
  connection.add(sql().rollback);
  co_await connection.run(settings_.reply_max);
  co_return failure && failure->state == "55P03";
}

// --- overdue runs that need something of that -----------------------------------------------------------------------

// They stay the first that are due: for a while they are not looked at, or the others would never have their turn.
void PostgresStore::defer_overdue_runs(const PgTables::DeferredRuns& out) {
  const Duration until = host_.elapsed() + kDeferFor;
  for (const Seq seq : out.runs) deferred_.insert_or_assign(seq, until);
  for (const auto& block : out.blocks) deferred_blocks_.insert_or_assign(block, until);
}

PgTables::DeferredRuns PostgresStore::deferred_runs() {
  const auto is_over = [now = host_.elapsed()](const auto& one) { return one.second <= now; };
  std::erase_if(deferred_, is_over);
  std::erase_if(deferred_blocks_, is_over);
  PgTables::DeferredRuns out;
  for (const auto& [seq, until] : deferred_) out.runs.insert(seq);
  for (const auto& [block, until] : deferred_blocks_) out.blocks.push_back(block);
  return out;
}

}  // namespace latchkey
