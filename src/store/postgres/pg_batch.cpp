// Executes a batch: retries it, splits it or parks its commands until each has a reply. Resolves unknown commits.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/seeded_bug.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

namespace {

// At most so many tenants are remembered as known to the database; the others are noted with every batch.
constexpr std::size_t kTenantsKnown = 100'000;

// A run's row says that it is open although it has a settlement: tables were restored in part, or edited by hand. A
// retry cannot succeed, because the locked row is wrong.
constexpr const char* kSettlements = "settlements_pkey";
bool is_settled_twice(const Failure& failure) { return failure.constraint == kSettlements; }

// Another transaction inserted, changed or locked one of our rows. The batch was rolled back and may be retried.
bool is_collision(const Failure& failure) {
  if (is_settled_twice(failure)) return false;
  return failure.is_unique_violation() || failure.is_serialization_failure() || failure.is_deadlock() ||
         failure.is_lock_timeout();
}

Error describe(const Failure& failure) {
  if (failure.is_disk_full()) return {Code::STORE_FULL, "the database's disk is full; nothing was changed"};
  if (is_settled_twice(failure))
    return {Code::STORE_UNAVAILABLE,
            "the run is open but has a settlement: the database is inconsistent; nothing was changed"};
  return {Code::STORE_UNAVAILABLE, "the database could not be written; nothing was changed"};
}

}  // namespace

Task<void> PostgresStore::apply_batch(std::unique_ptr<Connection>& connection, Batch batch, WriterKind kind) {
  BatchExecution execution{
      .name = make_uuid_v7(clock_.now(), random_.next(), random_.next()), .kind = kind, .failing_since = {}};
  for (unsigned tries = 1;; ++tries) {
    const std::optional<Failure> failure = co_await execute_once(connection, batch, execution);
    if (!failure) co_return reply(std::move(batch));
    if (!execution.failing_since) execution.failing_since = host_.elapsed();
    co_await roll_back(connection, *failure, execution);
    if (batch.empty()) co_return;  // every command was read-only and has its reply
    // An undetected pooler gave us another session, or another program discarded our prepared statements.
    if (failure->is_stale_prepared_statement() && connection && connection->uses_prepared_statements()) {
      uses_prepared_statements_ = false;
      connection.reset();
      continue;
    }
    if (failure->is_unique_violation() && is_collision(*failure)) {
      execution.has_unique_violation = true;
      new_key_streak_ = 0;
    }
    const bool is_contended = failure->is_lock_timeout() && !execution.is_unknown;
    if (is_contended && co_await detect_contention(connection, execution)) continue;
    const bool may_retry = failure->lost || is_collision(*failure) || execution.is_unknown;
    // Split the batch, so that a command that fails or waits for a lock does not affect the others.
    if (batch.size() > 1 && (!may_retry || is_contended)) {
      Batch rest(std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2)),
                 std::make_move_iterator(batch.end()));
      batch.resize(batch.size() / 2);
      co_await apply_batch(connection, std::move(batch), kind);
      co_await apply_batch(connection, std::move(rest), kind);
      co_return;
    }
    // A command that changes many runs (sweep, take, purge) skips the inconsistent one in the next attempt.
    if (is_settled_twice(*failure) && !std::exchange(execution.checks_settlements, true)) continue;
    if (is_contended) co_return park(std::move(batch.front()));
    // After shutdown began, only an unknown commit is worth another attempt.
    const bool is_over = waiters_.has_ended() || execution.is_too_late || (is_closed() && !execution.is_unknown);
    Duration patience = execution.is_unknown ? kCommitResolutionTimeout : settings_.patience;
    if (waiters_.are_last()) patience = std::min(patience, kShutdownRetryWindow);
    if (!may_retry || is_over) patience = Duration{0};
    batch = reject_expired(std::move(batch), *failure, execution, patience);
    if (batch.empty()) co_return;
    co_await host_.wait(Duration{random_.next() % (failure->lost ? 200 : 5 * tries)});
  }
}

// One attempt. Returns nothing if the batch is committed.
Task<std::optional<Failure>> PostgresStore::execute_once(std::unique_ptr<Connection>& connection, Batch& batch,
                                                         BatchExecution& execution) {
  execution.is_committing = false;
  try {
    if (!connection || connection->is_lost()) connection = co_await connect();
    if (execution.backend) co_await terminate_orphaned_backend(*connection, execution);
    const bool must_resolve = execution.is_unknown && !LK_SEEDED(unknown_commit_retried);
    const bool is_committed = must_resolve && (LK_SEEDED(unknown_commit_acknowledged) ||
                                               co_await resolve_unknown_commit(*connection, execution));
    if (!is_committed) {
      if (std::exchange(execution.is_unknown, false))
        execution.name = make_uuid_v7(clock_.now(), random_.next(), random_.next());
      co_await try_batch(*connection, batch, execution);
    }
    notifier_.enqueue(std::exchange(execution.notifications, {}));
    co_return std::nullopt;
  } catch (const Failure& found) {
    // This server is a standby, behind a pooler or after a failover. Treat the connection as lost, so that the next one
    // finds the primary.
    const bool is_pooled = connection && !connection->uses_prepared_statements();
    const bool is_standby =
        found.is_read_only_transaction() ||
        (is_pooled && (found.is_feature_not_supported() || found.is_object_not_in_prerequisite_state()));
    co_return Failure(found.state, found.what(), found.lost || is_standby, found.constraint);
  } catch (const TablesError& found) {
    co_return Failure("", found.what(), false);
  }
}

Task<void> PostgresStore::roll_back(std::unique_ptr<Connection>& connection, const Failure& failure,
                                    BatchExecution& execution) {
  if (failure.lost) {
    execution.is_unknown |= execution.is_committing;
    if (!outage_since_) outage_since_ = host_.elapsed();
    connection.reset();
    counters_.forget();
    // After a failover the next server may lack rows that this one had.
    heads_.clear();
    tenants_.clear();
    co_return;
  }
  execution.backend.reset();
  if (!connection) co_return;
  try {
    connection->add(sql().rollback);
    co_await connection->run(settings_.reply_max);
  } catch (const Failure&) {
    connection.reset();
  }
}

// True if a retry can make progress: with SKIP LOCKED, or without the contended commands.
Task<bool> PostgresStore::detect_contention(std::unique_ptr<Connection>& connection, BatchExecution& execution) {
  bool can_progress = !std::exchange(execution.skips_locked, true);
  if (!connection) co_return can_progress;
  // If a probe fails, a later batch finds the same contention again.
  try {
    can_progress |= co_await probe_keys(*connection, std::exchange(execution.inserted_keys, {}), kProbeTimeLimit);
    can_progress |=
        co_await probe_contended_dead_letters(*connection, std::exchange(execution.inserted_dead_letters, {}));
  } catch (const Failure&) {
    connection.reset();
  }
  co_return can_progress;
}

// Sends the replies of a committed batch. Commands that were not applied are contended.
void PostgresStore::reply(Batch batch) {
  outage_since_.reset();
  set_failure(std::nullopt);
  for (auto& command : batch) {
    if (!command->is_applied) {
      park(std::move(command));
    } else {
      command->finish(nullptr);
    }
  }
}

// Rejects the commands that have waited for longer than `patience`, each by its own time, and returns the others for
// another attempt. If the commit is unknown, all commands expire together.
PostgresStore::Batch PostgresStore::reject_expired(Batch batch, const Failure& failure, const BatchExecution& execution,
                                                   Duration patience) {
  const Duration now = host_.elapsed();
  Batch left, expired;
  for (auto& command : batch) {
    // The reply timeout of a silent connection alone exceeds any patience: only the time after it counts.
    const Duration since = execution.is_unknown || !outage_since_
                               ? *execution.failing_since
                               : std::min(*execution.failing_since, std::max(*outage_since_, command->submitted));
    (now - since >= patience ? expired : left).push_back(std::move(command));
  }
  if (expired.empty()) return left;
  spdlog::error("postgres: {} commands failed: {}", expired.size(), failure.what());
  Error error = describe(failure);
  if (execution.is_unknown) error.detail = "commit status unknown; retry with the same key";
  set_failure(error);
  for (const auto& command : expired) {
    const bool may_be_committed = execution.is_unknown && command->is_applied;
    command->finish(may_be_committed && command->reply_mode == PgCommand::ReplyMode::best_effort ? nullptr : &error);
  }
  return left;
}

// Finds out whether a batch whose COMMIT has no known result was committed: it was if its id is in latchkey.batches.
// Otherwise this inserts the id with a negative time, which no batch writes, so that the old transaction cannot commit
// later. The retry uses a new id, because its replies differ. Both cases write: once this write is durable (also on a
// synchronous standby), so is every earlier commit.
Task<bool> PostgresStore::resolve_unknown_commit(Connection& connection, BatchExecution& execution) {
  // Read the backend's pid before it locks the id: this connection may break, too.
  Connector::begin(connection);
  connection.add(sql().backend_pid_and_clock);
  const auto backend = co_await connection.run(settings_.reply_max);
  execution.backend.emplace(backend.back().integer(0, 0), std::string(backend.back().bytes(0, 1)));
  clock_.observe(from_ms(backend.back().integer(0, 2)), backend.back().integer(0, 3));
  // This host may have been suspended. Once the id may have been purged, its absence proves nothing.
  execution.is_too_late = clock_.now() - execution.named_at > kCommitResolutionTimeout;
  if (execution.is_too_late) throw Failure("", "commit status unknown; too old to be resolved", false);
  connection.add({sql().resolve_unknown_commit, Params().add(execution.name).add(-to_ms(clock_.now()))});
  connection.add(sql().commit);
  const auto results = co_await connection.run(settings_.reply_max);
  if (connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  execution.backend.reset();
  co_return results[results.size() - 2].integer(0, 0) >= 0;
}

Task<void> PostgresStore::try_batch(Connection& connection, Batch& batch, BatchExecution& execution) {
  Connector::begin(connection);
  PgTables tables(random_, counters_, heads_);
  execution.inserted_dead_letters.clear();
  execution.inserted_keys.clear();
  tables.set_inserted_dead_letters(execution.inserted_dead_letters);
  tables.set_inserted_keys(execution.inserted_keys);
  tables.set_contention(contended_keys_, host_.elapsed());
  if (execution.checks_settlements) tables.check_settlements();
  ReadSet read_set;
  std::vector<PgCommand*> left;
  for (const auto& command : batch) {
    command->is_applied = false;
    if (needs_contended_key(*command)) continue;
    command->plan(read_set);
    left.push_back(command.get());
  }
  // Keys of enqueued jobs are mostly new, so they are not read: the insert fails if one exists. After such a failure
  // they are read for a while.
  const bool has_assumed_keys = !read_set.keys_assumed_new.empty();
  if (execution.has_unique_violation || new_key_streak_ < kNewKeyStreakMin) {
    read_set.keys_snapshot.insert(read_set.keys_assumed_new);
  } else {
    for (const Uuid& key : read_set.keys_assumed_new.sorted()) tables.assume_no_key(key);
  }
  const std::vector<Seq> requested = exclude_contended_runs(read_set, execution);
  Instant now;
  co_await load(connection, tables, std::move(read_set), true, execution, now);
  record_lock_results(tables, requested);
  while (true) {
    std::vector<PgCommand*> again;
    std::set<const PgCommand*> read_only;
    for (PgCommand* command : left) {
      tables.begin_command();
      try {
        command->apply({tables, random_, now});
        tables.end_command();
        command->is_applied = true;
        if (command->reply_early_if_read_only && tables.is_read_only()) read_only.insert(command);
      } catch (const NeedsRead&) {
        tables.undo_command();
        again.push_back(command);
      } catch (const StateConflict&) {
        throw Failure("23505", "a run is open but has a settlement", false, kSettlements);
      } catch (const LockContended&) {
        tables.undo_command();
      }
    }
    left = std::move(again);
    // Read-only replies depend on committed data only; send them before our commit.
    std::erase_if(batch, [&](const std::unique_ptr<PgCommand>& command) {
      if (!read_only.contains(command.get())) return false;
      command->finish(nullptr);
      return true;
    });
    if (left.empty()) break;
    co_await load(connection, tables, tables.take_read_set(), false, execution, now);
  }
  const bool changed = tables.has_changed();
  for (const Statement& write : tables.take_writes()) connection.add(write);
  std::set<std::string> new_tenants;
  for (const auto& head : tables.inserted_heads())
    if (!tenants_.contains(head->tenant)) new_tenants.insert(head->tenant);
  for (const std::string& tenant : new_tenants)
    connection.add({sql().note_tenant, Params().add(std::string_view(tenant))});
  if (clock_.must_raise_mark(now)) clock_.add_mark(connection, now);
  if (changed) connection.add({sql().name_batch, Params().add(execution.name).add(to_ms(now))});
  // Writes that make the next deadline earlier are tracked without a query. A sweep makes it later: read it again.
  const bool reads_deadline = tables.has_swept();
  if (reads_deadline) connection.add(sql().next_deadline);
  connection.add(sql().commit);
  const auto& dead_letters = tables.written_dead_letters();
  execution.notifications = {tables.has_queued(), {dead_letters.begin(), dead_letters.end()}};
  execution.is_committing = changed;
  execution.named_at = now;
  DeadlineTracker::Query query(deadlines_);
  const auto results = co_await connection.run(settings_.reply_max);
  if (changed && connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  if (has_assumed_keys && !execution.has_unique_violation && new_key_streak_ < kNewKeyStreakMin &&
      !tables.has_found_keys())
    new_key_streak_ += 1;
  if (tables.has_found_keys()) new_key_streak_ = 0;
  tables.update_head_cache();
  defer_overdue_runs(tables.deferred());
  if (tenants_.size() < kTenantsKnown) tenants_.merge(new_tenants);
  if (reads_deadline) query.finish(results[results.size() - 2]);
  if (const auto first = tables.first_deadline()) deadlines_.add(*first);
}

}  // namespace latchkey
