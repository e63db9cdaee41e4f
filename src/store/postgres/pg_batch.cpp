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

Task<void> PostgresStore::apply_batch(std::unique_ptr<Connection>& connection, Batch batch, Pace pace) {
  Attempt attempt{
      .name = make_uuid_v7(clock_->now(), random_.next(), random_.next()), .pace = pace, .failing_since = {}};
  for (unsigned tries = 1;; ++tries) {
    const std::optional<Failure> failure = co_await carry(connection, batch, attempt);
    if (!failure) co_return answer(std::move(batch));
    if (!attempt.failing_since) attempt.failing_since = host_.elapsed();
    co_await leave_transaction(connection, *failure, attempt);
    if (batch.empty()) co_return;  // all of it was answered before
    // A pooler that we did not recognise gave us another's session, or ours was changed behind our back.
    const bool has_lost_names = failure->state == "26000" || failure->state == "42P05" || failure->state == "0A000";
    if (has_lost_names && connection && connection->does_keep_plans()) {
      keeps_plans_ = false;
      connection.reset();
      continue;
    }
    if (failure->state == "23505" && is_collision(*failure)) {
      attempt.collided = true;
      trust_ = 0;
    }
    const bool is_held_up = failure->state == "55P03" && !attempt.is_unknown;
    if (is_held_up && co_await learns_who_holds(connection, attempt)) continue;
    const bool may_go_on = failure->lost || is_collision(*failure) || attempt.is_unknown;
    // One that cannot go on, or waits for somebody, must not hold up the others.
    if (batch.size() > 1 && (!may_go_on || is_held_up)) {
      Batch rest(std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2)),
                 std::make_move_iterator(batch.end()));
      batch.resize(batch.size() / 2);
      co_await apply_batch(connection, std::move(batch), pace);
      co_await apply_batch(connection, std::move(rest), pace);
      co_return;
    }
    // Of many that one command changes, it leaves that out.
    if (is_settled_twice(*failure) && !std::exchange(attempt.checks_settlements, true)) continue;
    if (is_held_up) co_return put_aside(std::move(batch.front()));
    // On closing only what is unknown is worth another try.
    const bool is_over = waits_.has_ended() || attempt.is_too_late || (is_closing() && !attempt.is_unknown);
    Duration patience = attempt.is_unknown ? kUnknownMost : settings_.patience;
    if (waits_.are_last()) patience = std::min(patience, kLastPatience);
    if (!may_go_on || is_over) patience = Duration{0};
    batch = refuse_late(std::move(batch), *failure, attempt, patience);
    if (batch.empty()) co_return;
    co_await host_.wait(Duration{random_.next() % (failure->lost ? 200 : 5 * tries)});
  }
}

// One try: none, when all of it is committed.
Task<std::optional<Failure>> PostgresStore::carry(std::unique_ptr<Connection>& connection, Batch& batch,
                                                  Attempt& attempt) {
  attempt.is_committing = false;
  try {
    if (!connection || connection->is_lost()) connection = co_await connect();
    if (attempt.backend) co_await end_backend(*connection, attempt);
    const bool asks = attempt.is_unknown && !LK_SEEDED(unknown_commit_tried_again);
    const bool is_kept = asks && (LK_SEEDED(unknown_commit_believed) || co_await find_kept(*connection, attempt));
    if (!is_kept) {
      if (std::exchange(attempt.is_unknown, false))
        attempt.name = make_uuid_v7(clock_->now(), random_.next(), random_.next());
      co_await try_batch(*connection, batch, attempt);
    }
    pass_on(std::exchange(attempt.news, {}));
    co_return std::nullopt;
  } catch (const Failure& found) {
    // A standby, behind a pooler or whose primary has just become one: the next connection is to find another.
    const bool is_pooled = connection && !connection->does_keep_plans();
    const bool is_standby = found.state == "25006" || (is_pooled && (found.state == "0A000" || found.state == "55000"));
    co_return Failure(found.state, found.what(), found.lost || is_standby, found.constraint);
  } catch (const TablesError& found) {
    co_return Failure("", found.what(), false);
  }
}

Task<void> PostgresStore::leave_transaction(std::unique_ptr<Connection>& connection, const Failure& failure,
                                            Attempt& attempt) {
  if (failure.lost) {
    attempt.is_unknown |= attempt.is_committing;
    if (!outage_since_) outage_since_ = host_.elapsed();
    connection.reset();
    counters_.forget();
    // The next server may be another one, that has not what this one had.
    heads_.clear();
    tenants_.clear();
    co_return;
  }
  attempt.backend.reset();
  if (!connection) co_return;
  try {
    connection->add(sql().rollback);
    co_await connection->run(settings_.reply_max);
  } catch (const Failure&) {
    connection.reset();
  }
}

// Whether there is reason to try again at once: passing over what is held, or apart from who wants it.
Task<bool> PostgresStore::learns_who_holds(std::unique_ptr<Connection>& connection, Attempt& attempt) {
  bool is_another = !std::exchange(attempt.skips, true);
  if (!connection) co_return is_another;
  // Where it cannot be found out, whoever tries next meets it again.
  try {
    is_another |= co_await find_held(*connection, std::exchange(attempt.keys, {}), kLookMost);
    is_another |= co_await find_held_letters(*connection, std::exchange(attempt.letters, {}));
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
      put_aside(std::move(command));
    } else {
      command->finish(nullptr);
    }
  }
}

// What is left to be tried again. Those that have waited for too long are told so, each by its own time; where a commit
// is unknown, all of them together, and much later.
PostgresStore::Batch PostgresStore::refuse_late(Batch batch, const Failure& failure, const Attempt& attempt,
                                                Duration patience) {
  const Duration now = host_.elapsed();
  Batch left, late;
  for (auto& command : batch) {
    // A connection that went silent has taken longer than any patience by itself: only what comes after it counts.
    const Duration since = attempt.is_unknown || !outage_since_
                               ? *attempt.failing_since
                               : std::min(*attempt.failing_since, std::max(*outage_since_, command->submitted));
    (now - since >= patience ? late : left).push_back(std::move(command));
  }
  if (late.empty()) return left;
  spdlog::error("postgres: {} were not written: {}", late.size(), failure.what());
  Error error = describe(failure);
  if (attempt.is_unknown) error.detail = "given up before it was known whether this was kept: ask again";
  tell_failure(error);
  for (const auto& command : late) {
    const bool may_be_kept = attempt.is_unknown && command->is_applied;
    command->finish(may_be_kept && command->manner == PgCommand::Manner::noted ? nullptr : &error);
  }
  return left;
}

// Whether a batch whose commit is not known was kept: it is if its name is there. If not, the name is taken now, by a
// mark that no batch leaves, so that it cannot be kept any more behind our back; what is applied anew goes by another
// name, because the answers are other ones too. Either way something is written: when that is durable, on a standby too
// where there must be one, so is all that came before it.
Task<bool> PostgresStore::find_kept(Connection& connection, Attempt& attempt) {
  // Who does it is known before it holds the name: it may go silent as well.
  begin(connection);
  connection.add(sql().who_am_i);
  const auto who = co_await connection.run(settings_.reply_max);
  attempt.backend.emplace(who.back().integer(0, 0), std::string(who.back().bytes(0, 1)));
  see_clock(from_ms(who.back().integer(0, 2)), who.back().integer(0, 3));
  // This machine may have stood still meanwhile. Once its name may have been purged, that it is not there says nothing.
  attempt.is_too_late = clock_->now() - attempt.named_at > kUnknownMost;
  if (attempt.is_too_late) throw Failure("", "it is too long ago to find out whether it was kept", false);
  connection.add({sql().find_kept, Params().add(attempt.name).add(-to_ms(clock_->now()))});
  connection.add(sql().commit);
  const auto results = co_await connection.run(settings_.reply_max);
  if (connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  attempt.backend.reset();
  co_return results[results.size() - 2].integer(0, 0) >= 0;
}

Task<void> PostgresStore::try_batch(Connection& connection, Batch& batch, Attempt& attempt) {
  begin(connection);
  PgTables tables(random_, counters_, heads_);
  attempt.letters.clear();
  attempt.keys.clear();
  tables.tell_new_letters(attempt.letters);
  tables.tell_new_keys(attempt.keys);
  tables.leave_keys(held_, host_.elapsed());
  if (attempt.checks_settlements) tables.check_settlements();
  Needs needs;
  std::vector<PgCommand*> left;
  for (const auto& command : batch) {
    command->is_applied = false;
    if (is_held(*command)) continue;
    command->plan(needs);
    left.push_back(command.get());
  }
  // Keys of jobs are mostly new: they are not looked for, the index says when one was not. For a while after that they
  // are.
  const bool has_new_keys = !needs.new_keys.empty();
  if (attempt.collided || trust_ < kTrusted) {
    needs.keys.insert(needs.new_keys);
  } else {
    for (const Uuid& key : needs.new_keys.sorted()) tables.guess_no_key(key);
  }
  const std::vector<Seq> wanted = avoid_held_runs(needs, attempt);
  Instant now;
  co_await load(connection, tables, std::move(needs), true, attempt, now);
  note_held_runs(tables, wanted);
  while (true) {
    std::vector<PgCommand*> again;
    std::set<const PgCommand*> mere;
    for (PgCommand* command : left) {
      tables.begin_command();
      try {
        command->apply({tables, random_, now});
        tables.end_command();
        command->is_applied = true;
        if (command->may_be_mere && tables.is_mere_answer()) mere.insert(command);
      } catch (const Missing&) {
        tables.undo_command();
        again.push_back(command);
      } catch (const Contradicted&) {
        throw Failure("23505", "it is settled, and open too", false, kSettlements);
      } catch (const Held&) {
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
    co_await load(connection, tables, tables.take_needs(), false, attempt, now);
  }
  const bool changed = tables.has_changed();
  for (const Statement& write : tables.take_writes()) connection.add(write);
  std::set<std::string> new_tenants;
  for (const auto& head : tables.made_heads())
    if (!tenants_.contains(head->tenant)) new_tenants.insert(head->tenant);
  for (const std::string& tenant : new_tenants)
    connection.add({sql().note_tenant, Params().add(std::string_view(tenant))});
  if (to_ms(now) >= clock_mark_ms_) add_clock_mark(connection, now);
  if (changed) connection.add({sql().name_batch, Params().add(attempt.name).add(to_ms(now))});
  // What was written since can only have brought it nearer, which is known; a sweep wants to know how far it is now.
  const bool asks_deadline = tables.has_swept();
  if (asks_deadline) connection.add(sql().next_deadline);
  connection.add(sql().commit);
  const auto& letters = tables.written_letters();
  attempt.news = {tables.has_queued(), {letters.begin(), letters.end()}};
  attempt.is_committing = changed;
  attempt.named_at = now;
  const DeadlineQuestion question(*this);
  const auto results = co_await connection.run(settings_.reply_max);
  if (changed && connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  if (has_new_keys && !attempt.collided && trust_ < kTrusted && !tables.has_met_keys()) trust_ += 1;
  if (tables.has_met_keys()) trust_ = 0;
  tables.remember_heads();
  leave_out(tables.left_out());
  if (tenants_.size() < kTenantsKnown) tenants_.merge(new_tenants);
  if (asks_deadline) next_deadline_ms_ = question.answer(results[results.size() - 2]);
  if (const auto first = tables.first_deadline()) note_deadline(*first);
}

}  // namespace latchkey
