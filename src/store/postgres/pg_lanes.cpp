// The lanes: connections that each take what waits, and carry it through one transaction.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>

#include "base/seeded_bug.hpp"
#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

namespace {

// Tenants that need not be told of again; more than these are, each time.
constexpr std::size_t kTenantsKnown = 100'000;

// Somebody else was faster, or holds what we want: everything is undone, and may be tried again.
bool is_collision(const Failure& failure) {
  return failure.state == "23505" || failure.state == "40001" || failure.state == "40P01" || failure.state == "55P03";
}

Error describe(const Failure& failure) {
  if (failure.state == "53100") return {Code::STORE_FULL, "the database has no room left; nothing was changed"};
  return {Code::STORE_UNAVAILABLE, "the database could not be written; nothing was changed"};
}

}  // namespace

Task<PostgresStore::Batch> PostgresStore::next_batch() {
  Batch batch;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      while (!waiting_.empty() && batch.size() < settings_.batch) {
        batch.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
      if (!batch.empty() || closing_) co_return batch;
    }
    co_await wake_.wait();
  }
}

Task<void> PostgresStore::work() {
  std::unique_ptr<Connection> connection;
  while (true) {
    Batch batch = co_await next_batch();
    if (batch.empty()) break;
    co_await apply_batch(connection, std::move(batch));
  }
  lanes_left_ -= 1;
  slow_wake_.ring();
  news_.ring();
  tick_.ring();
}

// What somebody else's open transaction holds up: asked for again and again, apart from all that it does not hold up.
Task<void> PostgresStore::work_slowly() {
  std::unique_ptr<Connection> connection;
  while (true) {
    while (slow_.empty() && held_.empty() && held_letters_.empty()) {
      if (lanes_left_ == 0) co_return;
      co_await slow_wake_.wait();
    }
    if (slow_.empty() && lanes_left_ == 0) co_return;
    co_await host_.wait(kSlowPause);
    co_await look_at_held(connection);
    const bool closing = is_closing();
    Batch batch;
    for (Slow& one : std::exchange(slow_, {})) {
      if (closing || host_.elapsed() - one.since > settings_.patience) {
        const Error held{Code::STORE_UNAVAILABLE, "somebody's open transaction holds this; nothing was changed"};
        one.command->finish(&held);
      } else {
        one.command->held_since = one.since;
        is_held(*one.command) ? put_aside(std::move(one.command)) : batch.push_back(std::move(one.command));
      }
    }
    if (!batch.empty()) co_await apply_batch(connection, std::move(batch));
  }
}

void PostgresStore::put_aside(std::unique_ptr<PgCommand> command) {
  const Duration since = command->held_since.value_or(host_.elapsed());
  slow_.push_back({std::move(command), since});
  slow_wake_.ring();
}

bool PostgresStore::is_closing() {
  const std::lock_guard lock(mutex_);
  return closing_;
}

Task<void> PostgresStore::apply_batch(std::unique_ptr<Connection>& connection, Batch batch) {
  std::optional<Duration> failing_since;
  Attempt attempt{.name = make_uuid_v7(clock_->now(), random_.next(), random_.next())};
  for (unsigned tries = 1;; ++tries) {
    attempt.is_committing = false;
    std::optional<Failure> failure;
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
    } catch (const Failure& found) {
      failure.emplace(found);
    } catch (const TablesError& found) {
      failure.emplace("", found.what(), false);
    }
    if (!failure) {
      tell_failure(std::nullopt);
      for (auto& command : batch) {
        if (!command->is_applied) {
          put_aside(std::move(command));
        } else {
          command->finish(nullptr);
        }
      }
      co_return;
    }
    if (failure->lost) {
      attempt.is_unknown |= attempt.is_committing;
      connection.reset();
      counters_.forget();
      // The next server may be another one, that has not what this one had.
      heads_.clear();
      tenants_.clear();
    } else {
      attempt.backend.reset();
      if (connection) try {
          connection->add("ROLLBACK");
          co_await connection->run(settings_.reply_max);
        } catch (const Failure&) {
          connection.reset();
        }
    }
    // A pooler that we did not recognise gave us another's session, or ours was changed behind our back.
    const bool has_lost_names = failure->state == "26000" || failure->state == "42P05" || failure->state == "0A000";
    if (has_lost_names && connection && connection->does_keep_plans()) {
      keeps_plans_ = false;
      connection.reset();
      continue;
    }
    const bool is_held_up = failure->state == "55P03";
    if (failure->state == "23505") {
      attempt.collided = true;
      trust_ = 0;
    }
    if (is_held_up && !attempt.is_unknown) {
      bool is_another = !std::exchange(attempt.skips, true);
      // Where it cannot be found out, whoever tries next meets it again.
      if (connection) try {
          is_another |= co_await find_held(*connection, keys_of(batch));
          is_another |= co_await find_held_letters(*connection, std::exchange(attempt.letters, {}));
        } catch (const Failure&) {
          connection.reset();
        }
      if (is_another) continue;
    }
    const bool may_go_on = failure->lost || is_collision(*failure) || attempt.is_unknown;
    // One that cannot go on, or waits for somebody, must not hold up the others.
    if (!attempt.is_unknown && batch.size() > 1 && (!may_go_on || is_held_up)) {
      Batch rest(std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2)),
                 std::make_move_iterator(batch.end()));
      batch.resize(batch.size() / 2);
      co_await apply_batch(connection, std::move(batch));
      co_await apply_batch(connection, std::move(rest));
      co_return;
    }
    if (is_held_up && !attempt.is_unknown) {
      put_aside(std::move(batch.front()));
      co_return;
    }
    // On closing only what is unknown is worth another try.
    const bool is_over = waits_.has_ended() || (is_closing() && !attempt.is_unknown);
    // From the first failure on: a connection that went silent has taken longer than any patience by itself.
    if (!failing_since) failing_since = host_.elapsed();
    const Duration waited = host_.elapsed() - *failing_since;
    Duration patience = attempt.is_unknown ? kUnknownMost : settings_.patience;
    if (waits_.are_last()) patience = std::min(patience, kLastPatience);
    if (!may_go_on || is_over || waited >= patience) {
      spdlog::error("postgres: a batch of {} was not written: {}", batch.size(), failure->what());
      Error error = describe(*failure);
      if (attempt.is_unknown) error.detail = "given up before it was known whether this was kept: ask again";
      tell_failure(error);
      for (const auto& command : batch) command->finish(&error);
      co_return;
    }
    co_await host_.wait(Duration{random_.next() % (failure->lost ? 200 : 5 * tries)});
  }
}

// Whether a batch whose commit is not known was kept: it is if its name is there. If not, the name is taken now, by a
// mark that no batch leaves, so that it cannot be kept any more behind our back; what is applied anew goes by another
// name, because the answers are other ones too. Either way something is written: when that is durable, on a standby too
// where there must be one, so is all that came before it.
Task<bool> PostgresStore::find_kept(Connection& connection, const Attempt& attempt) {
  begin(connection);
  connection.add(
      {"INSERT INTO latchkey.batches AS b (id, at) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET at = b.at "
       "RETURNING at",
       Params().add(attempt.name).add(-to_ms(clock_->now()))});
  connection.add("COMMIT");
  const auto results = co_await connection.run(settings_.reply_max);
  if (connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  co_return results[results.size() - 2].integer(0, 0) >= 0;
}

Task<void> PostgresStore::try_batch(Connection& connection, Batch& batch, Attempt& attempt) {
  begin(connection);
  PgTables tables(random_, counters_, heads_);
  attempt.letters.clear();
  tables.tell_new_letters(attempt.letters);
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
  if (attempt.collided || trust_ < kTrusted) {
    needs.keys.insert(needs.new_keys);
  } else {
    for (const Uuid& key : needs.new_keys.sorted()) tables.load_no_key(key);
  }
  Instant now;
  co_await load(connection, tables, std::move(needs), true, attempt, now);
  while (true) {
    std::vector<PgCommand*> again;
    for (PgCommand* command : left) {
      tables.begin_command();
      try {
        command->apply({tables, random_, now});
        command->is_applied = true;
      } catch (const Missing&) {
        tables.undo_command();
        again.push_back(command);
      } catch (const Held&) {
        tables.undo_command();
      }
    }
    left = std::move(again);
    if (left.empty()) break;
    co_await load(connection, tables, tables.take_needs(), false, attempt, now);
  }
  const bool changed = tables.has_changed();
  for (const Statement& write : tables.take_writes()) connection.add(write);
  std::set<std::string> new_tenants;
  for (const auto& head : tables.made_heads())
    if (!tenants_.contains(head->tenant)) new_tenants.insert(head->tenant);
  for (const std::string& tenant : new_tenants)
    connection.add({"SELECT latchkey.note_tenant($1)", Params().add(std::string_view(tenant))});
  if (to_ms(now) >= clock_mark_ms_) {
    clock_mark_ms_ = to_ms(now + kMarkAhead);
    connection.add({"SELECT setval('latchkey.clock', $1)", Params().add(clock_mark_ms_)});
  }
  if (changed)
    connection.add(
        {"INSERT INTO latchkey.batches (id, at) VALUES ($1, $2)", Params().add(attempt.name).add(to_ms(now))});
  // What was written since can only have brought it nearer, which is known; a sweep wants to know how far it is now.
  const bool asks_deadline = tables.has_swept();
  if (asks_deadline) connection.add(kNextDeadline);
  connection.add("COMMIT");
  attempt.is_committing = changed;
  const DeadlineQuestion question(*this);
  const auto results = co_await connection.run(settings_.reply_max);
  if (changed && connection.has_warned()) throw Failure("01000", "the commit may not be replicated", true);
  if (!attempt.collided && trust_ < kTrusted && !tables.has_met_keys()) trust_ += 1;
  if (tables.has_met_keys()) trust_ = 0;
  tables.remember_heads();
  leave_out(tables.left_out());
  if (tenants_.size() < kTenantsKnown) tenants_.merge(new_tenants);
  if (tables.has_queued()) {
    has_news_ = true;
    news_.ring();
  }
  if (asks_deadline) next_deadline_ms_ = question.answer(results[results.size() - 2]);
  if (const auto first = tables.first_deadline()) note_deadline(*first);
}

}  // namespace latchkey
