// A batch on its way to its commit: tried, and tried again or apart, until it is known what became of it.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/seeded_bug.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

namespace {

// Tenants that need not be told of again; more than these are, each time.
constexpr std::size_t kTenantsKnown = 100'000;

// Something in the database says of a settled run that it is open: tables that were restored in part, or changed by
// hand. The row that was locked for it does not speak for it, and no further try will find it otherwise.
constexpr const char* kSettlements = "settlements_pkey";
bool is_settled_twice(const Failure& failure) { return failure.constraint == kSettlements; }

// Somebody else was faster, or holds what we want: everything is undone, and may be tried again.
bool is_collision(const Failure& failure) {
  if (is_settled_twice(failure)) return false;
  return failure.state == "23505" || failure.state == "40001" || failure.state == "40P01" || failure.state == "55P03";
}

Error describe(const Failure& failure) {
  if (failure.state == "53100") return {Code::STORE_FULL, "the database has no room left; nothing was changed"};
  if (is_settled_twice(failure))
    return {Code::STORE_UNAVAILABLE,
            "the database says that this run is open and that it was settled; nothing was changed"};
  return {Code::STORE_UNAVAILABLE, "the database could not be written; nothing was changed"};
}

}  // namespace

Task<void> PostgresStore::apply_batch(std::unique_ptr<Connection>& connection, Batch batch, WriterKind kind) {
  BatchExecution execution{
      .name = make_uuid_v7(clock_.now(), random_.next(), random_.next()), .kind = kind, .failing_since = {}};
  for (unsigned tries = 1;; ++tries) {
    const std::optional<Failure> failure = co_await execute_once(connection, batch, execution);
    if (!failure) co_return answer(std::move(batch));
    if (!execution.failing_since) execution.failing_since = host_.elapsed();
    co_await leave_transaction(connection, *failure, execution);
    if (batch.empty()) co_return;  // all of it was answered before
    // A pooler that we did not recognise gave us another's session, or ours was changed behind our back.
    const bool has_lost_names = failure->state == "26000" || failure->state == "42P05" || failure->state == "0A000";
    if (has_lost_names && connection && connection->uses_prepared_statements()) {
      uses_prepared_statements_ = false;
      connection.reset();
      continue;
    }
    if (failure->state == "23505" && is_collision(*failure)) {
      execution.collided = true;
      new_key_streak_ = 0;
    }
    const bool is_contended = failure->state == "55P03" && !execution.is_unknown;
    if (is_contended && co_await detect_contention(connection, execution)) continue;
    const bool may_go_on = failure->lost || is_collision(*failure) || execution.is_unknown;
    // One that cannot go on, or waits for somebody, must not hold up the others.
    if (batch.size() > 1 && (!may_go_on || is_contended)) {
      Batch rest(std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2)),
                 std::make_move_iterator(batch.end()));
      batch.resize(batch.size() / 2);
      co_await apply_batch(connection, std::move(batch), kind);
      co_await apply_batch(connection, std::move(rest), kind);
      co_return;
    }
    // Of many that one command changes, it leaves that out.
    if (is_settled_twice(*failure) && !std::exchange(execution.checks_settlements, true)) continue;
    if (is_contended) co_return park(std::move(batch.front()));
    // On closing only what is unknown is worth another try.
    const bool is_over = waiters_.has_ended() || execution.is_too_late || (is_closing() && !execution.is_unknown);
    Duration patience = execution.is_unknown ? kCommitResolutionTimeout : settings_.patience;
    if (waiters_.are_last()) patience = std::min(patience, kShutdownRetryWindow);
    if (!may_go_on || is_over) patience = Duration{0};
    batch = reject_expired(std::move(batch), *failure, execution, patience);
    if (batch.empty()) co_return;
    co_await host_.wait(Duration{random_.next() % (failure->lost ? 200 : 5 * tries)});
  }
}

// One try: none, when all of it is committed.
Task<std::optional<Failure>> PostgresStore::execute_once(std::unique_ptr<Connection>& connection, Batch& batch,
                                                         BatchExecution& execution) {
  execution.is_committing = false;
  try {
    if (!connection || connection->is_lost()) connection = co_await connect();
    if (execution.backend) co_await terminate_orphaned_backend(*connection, execution);
    const bool asks = execution.is_unknown && !LK_SEEDED(unknown_commit_tried_again);
    const bool is_kept =
        asks && (LK_SEEDED(unknown_commit_believed) || co_await resolve_unknown_commit(*connection, execution));
    if (!is_kept) {
      if (std::exchange(execution.is_unknown, false))
        execution.name = make_uuid_v7(clock_.now(), random_.next(), random_.next());
      co_await try_batch(*connection, batch, execution);
    }
    notifier_.enqueue(std::exchange(execution.news, {}));
    co_return std::nullopt;
  } catch (const Failure& found) {
    // A standby, behind a pooler or whose primary has just become one: the next connection is to find another.
    const bool is_pooled = connection && !connection->uses_prepared_statements();
    const bool is_standby = found.state == "25006" || (is_pooled && (found.state == "0A000" || found.state == "55000"));
    co_return Failure(found.state, found.what(), found.lost || is_standby, found.constraint);
  } catch (const TablesError& found) {
    co_return Failure("", found.what(), false);
  }
}

Task<void> PostgresStore::leave_transaction(std::unique_ptr<Connection>& connection, const Failure& failure,
                                            BatchExecution& execution) {
  if (failure.lost) {
    execution.is_unknown |= execution.is_committing;
    if (!outage_since_) outage_since_ = host_.elapsed();
    connection.reset();
    counters_.forget();
    // The next server may be another one, that has not what this one had.
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

// Whether there is reason to try again at once: passing over what is held, or apart from who wants it.
Task<bool> PostgresStore::detect_contention(std::unique_ptr<Connection>& connection, BatchExecution& execution) {
  bool is_another = !std::exchange(execution.skips, true);
  if (!connection) co_return is_another;
  // Where it cannot be found out, whoever tries next meets it again.
  try {
    is_another |= co_await find_held(*connection, std::exchange(execution.keys, {}), kProbeTimeLimit);
    is_another |= co_await probe_contended_dead_letters(*connection, std::exchange(execution.letters, {}));
  } catch (const Failure&) {
    connection.reset();
  }
  co_return is_another;
}

void PostgresStore::answer(Batch batch) {
  outage_since_.reset();
  tell_failure(std::nullopt);
  for (auto& command : batch) {
    if (!command->is_applied) {
      park(std::move(command));
    } else {
      command->finish(nullptr);
    }
  }
}

// What is left to be tried again. Those that have waited for too long are told so, each by its own time; where a commit
// is unknown, all of them together, and much later.
PostgresStore::Batch PostgresStore::reject_expired(Batch batch, const Failure& failure, const BatchExecution& execution,
                                                   Duration patience) {
  const Duration now = host_.elapsed();
  Batch left, late;
  for (auto& command : batch) {
    // A connection that went silent has taken longer than any patience by itself: only what comes after it counts.
    const Duration since = execution.is_unknown || !outage_since_
                               ? *execution.failing_since
                               : std::min(*execution.failing_since, std::max(*outage_since_, command->submitted));
    (now - since >= patience ? late : left).push_back(std::move(command));
  }
  if (late.empty()) return left;
  spdlog::error("postgres: {} were not written: {}", late.size(), failure.what());
  Error error = describe(failure);
  if (execution.is_unknown) error.detail = "given up before it was known whether this was kept: ask again";
  tell_failure(error);
  for (const auto& command : late) {
    const bool may_be_kept = execution.is_unknown && command->is_applied;
    command->finish(may_be_kept && command->manner == PgCommand::ReplyMode::best_effort ? nullptr : &error);
  }
  return left;
}

// Whether a batch whose commit is not known was kept: it is if its name is there. If not, the name is taken now, by a
// mark that no batch leaves, so that it cannot be kept any more behind our back; what is applied anew goes by another
// name, because the answers are other ones too. Either way something is written: when that is durable, on a standby too
// where there must be one, so is all that came before it.
Task<bool> PostgresStore::resolve_unknown_commit(Connection& connection, BatchExecution& execution) {
  // Who does it is known before it holds the name: it may go silent as well.
  Connector::begin(connection);
  connection.add(sql().backend_pid_and_clock);
  const auto who = co_await connection.run(settings_.reply_max);
  execution.backend.emplace(who.back().integer(0, 0), std::string(who.back().bytes(0, 1)));
  clock_.observe(from_ms(who.back().integer(0, 2)), who.back().integer(0, 3));
  // This machine may have stood still meanwhile. Once its name may have been purged, that it is not there says nothing.
  execution.is_too_late = clock_.now() - execution.named_at > kCommitResolutionTimeout;
  if (execution.is_too_late) throw Failure("", "it is too long ago to find out whether it was kept", false);
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
  execution.letters.clear();
  execution.keys.clear();
  tables.set_inserted_dead_letters(execution.letters);
  tables.set_inserted_keys(execution.keys);
  tables.set_contention(contended_keys_, host_.elapsed());
  if (execution.checks_settlements) tables.check_settlements();
  ReadSet needs;
  std::vector<PgCommand*> left;
  for (const auto& command : batch) {
    command->is_applied = false;
    if (is_held(*command)) continue;
    command->plan(needs);
    left.push_back(command.get());
  }
  // Keys of jobs are mostly new: they are not looked for, the index says when one was not. For a while after that they
  // are.
  const bool has_new_keys = !needs.keys_assumed_new.empty();
  if (execution.collided || new_key_streak_ < kNewKeyStreakMin) {
    needs.keys_snapshot.insert(needs.keys_assumed_new);
  } else {
    for (const Uuid& key : needs.keys_assumed_new.sorted()) tables.guess_no_key(key);
  }
  const std::vector<Seq> wanted = exclude_contended_runs(needs, execution);
  Instant now;
  co_await load(connection, tables, std::move(needs), true, execution, now);
  record_lock_results(tables, wanted);
  while (true) {
    std::vector<PgCommand*> again;
    std::set<const PgCommand*> mere;
    for (PgCommand* command : left) {
      tables.begin_command();
      try {
        command->apply({tables, random_, now});
        tables.end_command();
        command->is_applied = true;
        if (command->reply_early_if_read_only && tables.is_read_only()) mere.insert(command);
      } catch (const NeedsRead&) {
        tables.undo_command();
        again.push_back(command);
      } catch (const StateConflict&) {
        throw Failure("23505", "it is settled, and open too", false, kSettlements);
      } catch (const LockContended&) {
        tables.undo_command();
      }
    }
    left = std::move(again);
    // What they go by is committed, and they write nothing: whatever becomes of this batch, it is so.
    std::erase_if(batch, [&](const std::unique_ptr<PgCommand>& command) {
      if (!mere.contains(command.get())) return false;
      command->finish(nullptr);
      return true;
    });
    if (left.empty()) break;
    co_await load(connection, tables, tables.take_needs(), false, execution, now);
  }
  const bool changed = tables.has_changed();
  for (const Statement& write : tables.take_writes()) connection.add(write);
  std::set<std::string> new_tenants;
  for (const auto& head : tables.made_heads())
    if (!tenants_.contains(head->tenant)) new_tenants.insert(head->tenant);
  for (const std::string& tenant : new_tenants)
    connection.add({sql().note_tenant, Params().add(std::string_view(tenant))});
  if (clock_.must_raise_mark(now)) clock_.add_mark(connection, now);
  if (changed) connection.add({sql().name_batch, Params().add(execution.name).add(to_ms(now))});
  // What was written since can only have brought it nearer, which is known; a sweep wants to know how far it is now.
  const bool asks_deadline = tables.has_swept();
  if (asks_deadline) connection.add(sql().next_deadline);
  connection.add(sql().commit);
  const auto& letters = tables.written_letters();
  execution.news = {tables.has_queued(), {letters.begin(), letters.end()}};
  execution.is_committing = changed;
  execution.named_at = now;
  DeadlineTracker::Query query(deadlines_);
  const auto results = co_await connection.run(settings_.reply_max);
  if (changed && connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  if (has_new_keys && !execution.collided && new_key_streak_ < kNewKeyStreakMin && !tables.has_met_keys())
    new_key_streak_ += 1;
  if (tables.has_met_keys()) new_key_streak_ = 0;
  tables.remember_heads();
  defer_overdue_runs(tables.left_out());
  if (tenants_.size() < kTenantsKnown) tenants_.merge(new_tenants);
  if (asks_deadline) query.finish(results[results.size() - 2]);
  if (const auto first = tables.first_deadline()) deadlines_.add(*first);
}

}  // namespace latchkey
