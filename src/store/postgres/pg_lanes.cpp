// The lanes: connections that each take what waits, and carry it through one transaction.
#include <spdlog/spdlog.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

namespace {

constexpr const char* kClock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

// Somebody else was faster, or holds what we want: everything is undone, and may be tried again.
bool is_collision(const Failure& failure) {
  return failure.state == "23505" || failure.state == "40001" || failure.state == "40P01" || failure.state == "55P03";
}

Error describe(const Failure& failure) {
  if (failure.state == "53100") return {Code::STORE_FULL, "the database has no room left; nothing was changed"};
  return {Code::STORE_UNAVAILABLE, "the database could not be written; nothing was changed"};
}

Column column_of(const auto& values, Type type) {
  Column column(type);
  for (const auto& value : values) column.add(value);
  return column;
}

// What is done with each result of a round trip, in order.
using Handlers = std::vector<std::function<void(const Rows&)>>;

void load_runs(PgTables& tables, const Rows& rows, std::vector<Seq>* order = nullptr) {
  for (int row = 0; row < rows.size(); ++row) {
    const Seq seq = rows.integer(row, 0);
    if (order) order->push_back(seq);
    if (!tables.knows_run(seq)) tables.load_run(read_run(rows, row), rows.boolean(row, kRunColumnCount));
  }
}

std::string select_runs() {
  return std::string("SELECT ") + kRunColumns +
         ", EXISTS (SELECT 1 FROM latchkey.waits w WHERE w.predecessor = r.seq) FROM latchkey.runs r ";
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
    boost::system::error_code ignored;
    co_await wake_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }
}

Task<void> PostgresStore::work(std::size_t) {
  std::unique_ptr<Connection> connection;
  while (true) {
    Batch batch = co_await next_batch();
    if (batch.empty()) co_return;
    co_await apply_batch(connection, batch);
  }
}

Task<void> PostgresStore::apply_batch(std::unique_ptr<Connection>& connection, Batch& batch) {
  Duration waited{};
  bool is_unknown = false;
  for (unsigned tries = 1;; ++tries) {
    bool committing = false;
    std::optional<Failure> failure;
    try {
      if (!connection || connection->is_lost()) connection = co_await Connection::connect(settings_.url);
      co_await try_batch(*connection, batch, committing);
    } catch (const Failure& found) {
      failure.emplace(found);
    }
    if (!failure) {
      tell_failure(std::nullopt);
      answer(batch, nullptr);
      co_return;
    }
    if (failure->lost) {
      is_unknown |= committing;
      connection.reset();
      counters_.forget();
    } else {
      try {
        connection->add("ROLLBACK");
        co_await connection->run();
      } catch (const Failure&) {
        connection.reset();
      }
    }
    const bool may_go_on = failure->lost || is_collision(*failure);
    // One that cannot go on, or waits for somebody, must not hold up the others.
    if (!is_unknown && batch.size() > 1 && (!may_go_on || failure->state == "55P03")) {
      Batch rest(std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2)),
                 std::make_move_iterator(batch.end()));
      batch.resize(batch.size() / 2);
      co_await apply_batch(connection, batch);
      co_await apply_batch(connection, rest);
      co_return;
    }
    bool closing = false;
    {
      const std::lock_guard lock(mutex_);
      closing = closing_;
    }
    if (!may_go_on || closing || (waited >= settings_.patience && !is_unknown)) {
      spdlog::error("postgres: a batch of {} was not written: {}", batch.size(), failure->what());
      Error error = describe(*failure);
      if (is_unknown) error.detail = "closed before it was known whether this was kept: ask again";
      tell_failure(error);
      answer(batch, &error);
      co_return;
    }
    const Duration span{random_.next() % (failure->lost ? 200 : 5 * tries)};
    waited += span;
    boost::asio::steady_timer pause(context_, span);
    boost::system::error_code ignored;
    co_await pause.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }
}

Task<void> PostgresStore::try_batch(Connection& connection, Batch& batch, bool& committing) {
  PgTables tables(random_, counters_);
  tables.purged_to = purged_to_;
  Needs needs;
  for (const auto& command : batch) {
    command->is_applied = false;
    command->plan(needs);
  }
  connection.add("BEGIN");
  connection.add("SET LOCAL lock_timeout = '200ms'");
  Instant now;
  co_await load(connection, tables, std::move(needs), true, now);
  for (bool all = false; !all;) {
    all = true;
    for (const auto& command : batch) {
      if (command->is_applied) continue;
      tables.begin_command();
      try {
        command->apply({tables, random_, now});
        command->is_applied = true;
      } catch (const Missing&) {
        tables.undo_command();
        all = false;
      }
    }
    if (!all) co_await load(connection, tables, tables.take_needs(), false, now);
  }
  const bool changed = tables.has_changed();
  for (const Statement& write : tables.take_writes()) connection.add(write);
  if (to_ms(now) >= clock_mark_ms_) {
    clock_mark_ms_ = to_ms(now + kMarkAhead);
    connection.add({"SELECT setval('latchkey.clock', $1)", Params().add(clock_mark_ms_)});
  }
  connection.add("COMMIT");
  if (changed) connection.add("SELECT min(deadline) FROM latchkey.runs WHERE deadline IS NOT NULL");
  committing = changed;
  const auto results = co_await connection.run();
  purged_to_ = tables.purged_to;
  if (!changed) co_return;
  const Rows& deadline = results.back();
  next_deadline_ms_ = deadline.is_null(0, 0) ? std::numeric_limits<std::int64_t>::max() : deadline.integer(0, 0);
}

// One round trip: reads and locks what is needed. Rows of the first are waited for, in one order; those of later ones
// are not, or two batches could wait for each other.
Task<void> PostgresStore::load(Connection& connection, PgTables& tables, Needs needs, bool first, Instant& now) {
  const char* const lock = first ? " FOR UPDATE OF r" : " FOR UPDATE OF r NOWAIT";
  Handlers handlers;
  const auto add = [&](Statement statement, std::function<void(const Rows&)> handler) {
    connection.add(statement);
    handlers.push_back(std::move(handler));
  };
  const auto ignore = [](const Rows&) {};
  if (first) handlers.insert(handlers.end(), 2, ignore);  // BEGIN, SET
  for (Statement& write : tables.take_writes()) add(std::move(write), ignore);

  auto of_keys = std::make_shared<std::set<Seq>>();
  if (!needs.keys.empty()) {
    const Column hashes = column_of(needs.keys, Type::bytes);
    add({std::string("SELECT r.hash, r.seq FROM latchkey.keys r WHERE r.hash = ANY($1) ORDER BY r.hash") + lock,
         Params().add(hashes)},
        [&, of_keys](const Rows& rows) {
          for (const Digest& hash : needs.keys) tables.load_key(hash, std::nullopt);
          for (int row = 0; row < rows.size(); ++row) {
            Digest hash;
            std::memcpy(hash.data(), rows.bytes(row, 0).data(), hash.size());
            tables.load_key(hash, rows.integer(row, 1));
            of_keys->insert(rows.integer(row, 1));
          }
        });
  }
  if (!needs.keys.empty() || !needs.runs.empty())
    add({select_runs() +
             "WHERE r.seq = ANY($1 || ARRAY(SELECT k.seq FROM latchkey.keys k WHERE k.hash = ANY($2))) ORDER BY r.seq" +
             lock,
         Params().add(column_of(needs.runs, Type::int8)).add(column_of(needs.keys, Type::bytes))},
        [&, of_keys](const Rows& rows) {
          load_runs(tables, rows);
          of_keys->insert(needs.runs.begin(), needs.runs.end());
          for (const Seq seq : *of_keys)
            if (!tables.knows_run(seq)) tables.load_no_run(seq);
        });
  if (!needs.waits.empty())
    add({"SELECT predecessor, run FROM latchkey.waits WHERE predecessor = ANY($1)",
         Params().add(column_of(needs.waits, Type::int8))},
        [&](const Rows& rows) {
          std::map<Seq, std::set<RunId>> found;
          for (const Seq seq : needs.waits) found[seq];
          for (int row = 0; row < rows.size(); ++row) found[rows.integer(row, 0)].insert(rows.uuid(row, 1));
          for (auto& [seq, dependents] : found) tables.load_waits(seq, std::move(dependents));
        });
  for (const LetterName& name : needs.letters)
    add({std::string("SELECT ") + kLetterColumns +
             " FROM latchkey.dead_letters WHERE tenant = $1 AND function = $2 AND acknowledged_at IS NULL FOR UPDATE",
         Params().add(std::string_view(name.first)).add(std::string_view(name.second))},
        [&](const Rows& rows) {
          tables.load_letter(name, rows.empty() ? std::nullopt : std::optional(read_letter(rows, 0)));
        });
  for (const auto& [name, count] : needs.ready) {
    const std::string due = settings_.clock ? std::to_string(to_ms(clock_->now())) : kClock;
    add({select_runs() +
             "WHERE r.status = 0 AND r.origin = 1 AND r.waiting_for = 0 AND r.function = ANY($1) AND r.at <= " + due +
             " AND ($2::text IS NULL OR r.tenant = $2) ORDER BY r.priority DESC, r.at, r.seq LIMIT $3 "
             "FOR UPDATE OF r SKIP LOCKED",
         Params().add(column_of(name.functions, Type::text)).add_or_null(name.tenant).add(std::int64_t{count})},
        [&](const Rows& rows) {
          std::vector<Seq> order;
          load_runs(tables, rows, &order);
          tables.load_ready(name, std::move(order));
        });
  }
  for (auto& [name, question] : needs.questions) add(question, [](const Rows&) {});
  const std::size_t asked = handlers.size();
  if (needs.counters > counters_.left())
    add({"SELECT nextval('latchkey.counters') FROM generate_series(1, $1)",
         Params().add(static_cast<std::int64_t>((needs.counters - counters_.left() + kDrawn - 1) / kDrawn))},
        [&](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row) counters_.add(static_cast<std::uint64_t>(rows.integer(row, 0)));
        });
  // After the locks: so that what is drawn is above what their last owners drew.
  add({std::string("SELECT nextval('latchkey.fences'), ") + kClock, {}}, [&](const Rows& rows) {
    tables.load_fences(static_cast<std::uint64_t>(rows.integer(0, 0)));
    if (!first) return;
    database_clock_.set(from_ms(rows.integer(0, 1)));
    now = clock_->now();
  });

  auto results = co_await connection.run();
  for (std::size_t i = 0; i < results.size(); ++i) handlers[i](results[i]);
  for (std::size_t i = 0; i < needs.questions.size(); ++i)
    tables.load_answer(needs.questions[i].first, std::move(results[asked - needs.questions.size() + i]));
}

void PostgresStore::answer(Batch& batch, const Error* error) {
  for (const auto& command : batch) command->finish(error);
}

}  // namespace latchkey
