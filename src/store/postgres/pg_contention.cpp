// Tracks rows locked by other transactions. Commands that need one are moved to the contended writer so they do not
// block the batch.
#include <algorithm>

#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

// --- keys that other transactions are inserting ---------------------------------------------------------------------

// A per-request command is never parked as a whole: it skips its contended requests itself.
bool PostgresStore::needs_contended_key(PgCommand& command) const {
  if (contended_keys_.empty() || command.reply_mode == PgCommand::ReplyMode::per_request) return false;
  if (!command.keys) {
    ReadSet read_set;
    command.plan(read_set);
    read_set.keys_snapshot.insert(read_set.keys_assumed_new);
    command.keys = read_set.keys_snapshot.sorted();
  }
  return std::ranges::any_of(*command.keys, [&](const Uuid& key) { return contended_keys_.contains(key); });
}

// Probes the keys and records the results. Returns true if any key is contended.
Task<bool> PostgresStore::probe_keys(Connection& connection, std::vector<TenantKey> keys, Duration time_limit) {
  if (keys.empty()) co_return false;
  Column hashes{Type::uuid};
  for (const auto& [key, tenant] : keys) hashes.add(key);
  Connector::begin(connection);
  connection.add({sql().probe_keys, Params().add(hashes).add(time_limit.count())});
  connection.add(sql().rollback);
  const auto results = co_await connection.run(settings_.reply_max);
  // The result has a row for each key that was probed within the time limit.
  const Rows& probed = results[results.size() - 2];
  bool has_contended = false;
  for (int row = 0; row < probed.size(); ++row) {
    const TenantKey& key = keys.at(static_cast<std::size_t>(row));
    const bool is_contended = probed.boolean(row, 0);
    is_contended ? contended_keys_.add_contended(key, host_.elapsed())
                 : contended_keys_.mark_free(key, host_.elapsed());
    has_contended |= is_contended;
  }
  if (has_contended) contended_wake_.ring();
  co_return has_contended;
}

Task<void> PostgresStore::probe_contended(std::unique_ptr<Connection>& connection) {
  contended_keys_.prune(host_.elapsed());
  std::map<DeadLetterGroup, DeadLetter> dead_letters;
  if (host_.elapsed() >= dead_letters_probed_ + kDeadLetterProbeEvery) dead_letters = contended_dead_letters_;
  if (contended_keys_.empty() && dead_letters.empty()) co_return;
  try {
    if (!connection || connection->is_lost()) connection = co_await connect();
    co_await probe_keys(*connection, contended_keys_.next_contended(kProbesPerTick), kProbeContendedLimit);
    co_await probe_keys(*connection, contended_keys_.next_unprobed(kProbesPerTick), kProbeUnprobedLimit);
    if (!dead_letters.empty()) co_await probe_contended_dead_letters(*connection, std::move(dead_letters));
  } catch (const Failure&) {
    connection.reset();
  }
}

// --- runs that other transactions have locked -----------------------------------------------------------------------

// Moves contended runs of the read set to runs_nowait, so that the batch does not wait for their locks. Returns the
// runs whose lock results are to be recorded.
//
// Under constant contention a SKIP LOCKED probe never succeeds; the contended writer queues for the lock instead, one
// run per batch. With more than one, a run that stays locked would delay the runs behind it.
std::vector<Seq> PostgresStore::exclude_contended_runs(ReadSet& read_set, const BatchExecution& execution) {
  const Duration now = host_.elapsed();
  if (now >= contended_runs_pruned_ + kPruneEvery) {
    contended_runs_pruned_ = now;
    std::erase_if(contended_runs_, [now](const auto& one) { return one.second.until <= now; });
  }
  if (contended_runs_.empty()) return execution.skips_locked ? read_set.runs.sorted() : std::vector<Seq>{};
  const std::vector<Seq> requested = read_set.runs.sorted();
  read_set.runs = {};
  auto to_wait_for = contended_runs_.end();
  for (const Seq seq : requested) {
    const auto run = contended_runs_.find(seq);
    const bool is_contended = run != contended_runs_.end() && run->second.until > now;
    (is_contended ? read_set.runs_nowait : read_set.runs).insert(seq);
    const bool may_wait =
        is_contended && execution.kind == WriterKind::contended && now - run->second.waited >= kLockWaitEvery;
    if (may_wait && (to_wait_for == contended_runs_.end() || run->second.waited < to_wait_for->second.waited))
      to_wait_for = run;
  }
  if (to_wait_for == contended_runs_.end()) return requested;
  to_wait_for->second.waited = now;
  Wanted<Seq> others;
  for (const Seq seq : read_set.runs_nowait.sorted()) (seq == to_wait_for->first ? read_set.runs : others).insert(seq);
  read_set.runs_nowait = std::move(others);
  return requested;
}

void PostgresStore::record_lock_results(const PgTables& tables, const std::vector<Seq>& requested) {
  const Duration now = host_.elapsed();
  for (const Seq seq : requested) {
    if (tables.is_contended(seq)) {
      contended_runs_.try_emplace(seq, ContendedRun{.until = {}, .waited = now}).first->second.until =
          now + kContendedFor;
    } else {
      contended_runs_.erase(seq);
    }
  }
}

// --- dead letters that other transactions are inserting --------------------------------------------------------------

// Probes each dead letter with an insert that is rolled back. Returns true if any is contended.
Task<bool> PostgresStore::probe_contended_dead_letters(Connection& connection,
                                                       std::map<DeadLetterGroup, DeadLetter> dead_letters) {
  bool has_contended = false;
  for (auto& [group, dead_letter] : dead_letters) {
    if (co_await probe_dead_letter_insert(connection, dead_letter)) {
      contended_dead_letters_.insert_or_assign(group, std::move(dead_letter));
      has_contended = true;
    } else {
      contended_dead_letters_.erase(group);
    }
  }
  dead_letters_probed_ = host_.elapsed();
  if (has_contended) contended_wake_.ring();
  co_return has_contended;
}

Task<bool> PostgresStore::probe_dead_letter_insert(Connection& connection, const DeadLetter& dead_letter) {
  Connector::begin(connection);
  connection.add(sql().set_lock_timeout_1ms);
  connection.add(insert_dead_letter(dead_letter));
  std::optional<Failure> failure;
  try {
    co_await connection.run(settings_.reply_max);
  } catch (const Failure& found) {
    failure.emplace(found);
  }
  if (failure && failure->lost) throw *failure;
  connection.add(sql().rollback);
  co_await connection.run(settings_.reply_max);
  co_return failure && failure->is_lock_timeout();
}

// --- overdue runs that need a contended row --------------------------------------------------------------------------

// Skip them for 1 s, otherwise they starve the rest of the sweep: they stay the first that are due.
void PostgresStore::defer_overdue_runs(const PgTables::DeferredRuns& deferred) {
  const Duration until = host_.elapsed() + kDeferFor;
  for (const Seq seq : deferred.runs) deferred_.insert_or_assign(seq, until);
  for (const auto& block : deferred.blocks) deferred_blocks_.insert_or_assign(block, until);
}

PgTables::DeferredRuns PostgresStore::deferred_runs() {
  const auto is_over = [now = host_.elapsed()](const auto& one) { return one.second <= now; };
  std::erase_if(deferred_, is_over);
  std::erase_if(deferred_blocks_, is_over);
  PgTables::DeferredRuns deferred;
  for (const auto& [seq, until] : deferred_) deferred.runs.insert(seq);
  for (const auto& [block, until] : deferred_blocks_) deferred.blocks.push_back(block);
  return deferred;
}

}  // namespace latchkey
