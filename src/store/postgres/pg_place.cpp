// Connections as the lanes use them, and what is told to others on them.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/postgres/hosts.hpp"
#include "store/postgres/lookup.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/transaction_settings.hpp"

namespace latchkey {

using namespace pg;

namespace {

// More than any server can have drawn that its successor does not know of: a thousand with each look or new run, for a
// day. There is room for tens of thousands of such jumps.
constexpr std::int64_t kFencesLost = 100'000'000'000, kCountersLost = 100'000'000'000;

// Beside what holds for all. Plans must not depend on the first batch that came either.
std::string settings_for(Lasting lasting) {
  return make_settings(lasting, {{"role", "'latchkey_engine'"},
                                 {"lock_timeout", "'50ms'"},
                                 {"plan_cache_mode", "'force_generic_plan'"},
                                 {"statement_timeout", "'0'"},
                                 {"DateStyle", "'ISO'"},
                                 {"idle_in_transaction_session_timeout", "'5s'"}});
}

}  // namespace

Task<std::unique_ptr<Connection>> PostgresStore::connect() {
  auto connection = co_await open_connection();
  std::optional<Failure> failure;
  try {
    co_await check_server_identity(*connection);
    if (uses_prepared_statements_) co_await configure_session(*connection);
  } catch (const Failure& found) {
    failure.emplace(found.state, found.what(), true);  // whatever it was: there is no connection
  }
  if (failure) throw *failure;
  co_return connection;
}

// The first host that answers.
Task<std::unique_ptr<Connection>> PostgresStore::open_connection() {
  const auto hosts = split_hosts(settings_.url);
  for (std::size_t i = 0;; ++i) {
    std::optional<Failure> failure;
    try {
      const Duration limit = std::min(hosts[i].patience, settings_.reply_max);
      const std::string conninfo = co_await look_up(waits_, hosts[i].conninfo, limit);
      co_return co_await Connection::connect(waits_, conninfo, limit);
    } catch (const Failure& found) {
      failure.emplace(found);
    }
    if (i + 1 == hosts.size()) throw *failure;
  }
}

// What every transaction needs is said once where the session is ours for good; behind a pooler each says it itself.
Task<void> PostgresStore::configure_session(Connection& connection) {
  connection.add(sql().find_process);
  const auto process = co_await connection.run(settings_.reply_max);
  if (!connection.is_served_by(process.back().integer(0, 0))) co_return;
  connection.add(settings_for(Lasting::session));
  co_await connection.run(settings_.reply_max);
  connection.enable_prepared_statements();
}

void PostgresStore::begin(Connection& connection) {
  static const std::string settings = settings_for(Lasting::transaction);
  connection.add(sql().begin);
  if (!connection.uses_prepared_statements()) connection.add(settings);
}

// A connection that went silent, or was cut, may live on at the server's end, amid a transaction that holds what others
// need. Only one that waits for us is ended: a commit that waits for its standby would be shown to everybody, and the
// standby may never have it. Its end is waited for: who takes or sweeps passes over what is locked, and would find
// nothing.
Task<void> PostgresStore::terminate_orphaned_backend(Connection& connection, BatchExecution& execution) {
  const auto [pid, since] = *execution.backend;
  const Duration until = host_.elapsed() + kBackendExitTimeout;
  for (bool is_there = true; is_there;) {
    connection.add(sql().begin_plainly);
    connection.add(sql().reset_role);
    connection.add({sql().terminate_orphaned_backend, Params().add(pid).add(std::string_view(since))});
    connection.add(sql().commit);
    const auto results = co_await connection.run(settings_.reply_max);
    is_there = !results[results.size() - 2].empty() && host_.elapsed() < until && !waits_.are_last();
    if (is_there) co_await host_.wait(kCoalesceRecheck);
  }
  // Not before: where this connection goes silent too, the next one has to end it.
  execution.backend.reset();
}

// Another server than last time (a standby that was promoted, a backup that was restored) may not have what the last
// one promised: fences that were drawn there must not be drawn again, and who holds a lease by its word holds none.
Task<void> PostgresStore::check_server_identity(Connection& connection) {
  connection.add(sql().set_role_engine);
  connection.add(sql().compare_place);
  const auto found = co_await connection.run(settings_.reply_max);
  const std::string here(found.back().empty() ? "" : found.back().bytes(0, 0));
  if (!found.back().empty() && found.back().boolean(0, 1)) co_return observe_server(here);
  connection.add(sql().begin);
  connection.add(sql().set_role_engine_with_lock_timeout);
  connection.add(sql().change_place);
  const auto moved = co_await connection.run(settings_.reply_max);
  if (!moved.back().empty()) {
    spdlog::warn("postgres: this is another server than before (timeline {}): all leases end, fences jump",
                 moved.back().bytes(0, 0));
    const Params now = Params().add(to_ms(clock_->now()));
    connection.add({sql().jump_fences, Params().add(kFencesLost)});
    connection.add({sql().jump_counters, Params().add(kCountersLost)});
    connection.add({sql().end_block_leases, now});
    connection.add({sql().end_state_leases, now});
    note_deadline(clock_->now());
  }
  connection.add(sql().commit);
  co_await connection.run(settings_.reply_max);
  // Not before: a lane behind a pooler takes it for a place where fences have jumped.
  if (!here.empty()) observe_server(here);
}

// What was kept in memory of another server's answers may be lost here.
void PostgresStore::observe_server(std::string_view name) {
  if (server_identity_ == name) return;
  const bool is_first = server_identity_.empty();
  server_identity_ = name;
  if (is_first) return;
  data_epoch_ += 1;
  counters_.forget();
  heads_.clear();
  tenants_.clear();
}

// The database's time, and the mark that no server's time has passed. One that was ahead of the database's when its
// clock was set, or only read it while it was wrong, has others follow: or it would end their leases before they are
// over.
void PostgresStore::see_clock(Instant database, std::int64_t mark_ms) {
  database_clock_.set(database);
  clock_mark_ms_ = mark_ms;
  if (!settings_.clock) clock_->catch_up(from_ms(mark_ms) - kMarkAhead);
}

void PostgresStore::add_clock_mark(Connection& connection, Instant now) {
  clock_mark_ms_ = to_ms(now + kMarkAhead);
  connection.add({sql().mark_clock, Params().add(clock_mark_ms_)});
}

void PostgresStore::record_server_identity() { sessions_.write({sql().record_server_identity, {}}); }

// What other hosts have written is nobody's but theirs until they die: whoever is left must hear of it.
Task<void> PostgresStore::watch_deadline() {
  std::unique_ptr<Connection> connection;
  Limit timer(context_.get_executor());
  while (true) {
    if (writers_left_ == 0) co_return;
    timer.set(kDeadlineEvery, [this] { tick_.ring(); });
    co_await tick_.wait();
    if (writers_left_ == 0) co_return;
    const DeadlineQuery question(*this);
    try {
      if (!connection || connection->is_lost()) connection = co_await open_connection();
      connection->add(sql().set_role_engine);
      connection->add(sql().place);
      connection->add(sql().read_clock);
      connection->add(sql().next_deadline);
      const auto results = co_await connection->run(settings_.reply_max);
      const Rows& clock = results[results.size() - 2];
      if (results[results.size() - 3].bytes(0, 0) != server_identity_) {
        co_await check_server_identity(*connection);
        continue;  // what was answered is older than that
      }
      see_clock(from_ms(clock.integer(0, 0)), clock.integer(0, 1));
      // Others are to know of a time that they cannot read from the database.
      const Instant now = clock_->now();
      if (!settings_.clock && now > from_ms(clock.integer(0, 0)) + kMarkAhead && to_ms(now) >= clock_mark_ms_) {
        connection->add(sql().set_role_engine);
        add_clock_mark(*connection, now);
      }
      next_deadline_ms_ = question.answer(results.back());
      co_await announce_server(*connection);
    } catch (const Failure&) {
      connection.reset();
    }
  }
}

Task<void> PostgresStore::announce_server(Connection& connection) {
  connection.add(sql().set_role_engine);
  connection.add(sql().wait_shortly);
  connection.add(sql().announce_server);
  try {
    co_await connection.run(settings_.reply_max);
  } catch (const Failure& found) {
    if (found.lost) throw;
  }
}

// What others write while it is asked, the answer does not know of.
PostgresStore::DeadlineQuery::DeadlineQuery(PostgresStore& store)
    : store_(store), written_(store.deadline_queries_.insert(store.deadline_queries_.end(), kNever)) {}
PostgresStore::DeadlineQuery::~DeadlineQuery() { store_.deadline_queries_.erase(written_); }
std::int64_t PostgresStore::DeadlineQuery::answer(const Rows& rows) const {
  return rows.is_null(0, 0) ? *written_ : std::min(rows.integer(0, 0), *written_);
}

void PostgresStore::note_deadline(Instant written) {
  next_deadline_ms_ = std::min<std::int64_t>(next_deadline_ms_, to_ms(written));
  for (std::int64_t& one : deadline_queries_) one = std::min(one, to_ms(written));
}

void PostgresStore::enqueue_notifications(PendingNotifications news) {
  if (!news.work && news.letters.empty()) return;
  pending_notifications_.work |= news.work;
  pending_notifications_.letters.merge(news.letters);
  news_.ring();
}

// Others who give notice are not waited for for ever: one of them may wait for a standby that is gone.
void PostgresStore::add_notify_statements(Connection& connection, const PendingNotifications& news) {
  connection.add(sql().set_role_engine_with_lock_timeout);
  Column tenants{Type::text}, functions{Type::text};
  for (const auto& [tenant, function] : news.letters) {
    tenants.add(std::string_view(tenant));
    functions.add(std::string_view(function));
  }
  if (tenants.size() > 0) connection.add({sql().notify_letters, Params().add(tenants).add(functions)});
  if (news.work) connection.add(sql().notify_work);
}

// Tells whoever listens, apart from the commits that it is about: of commits that give notice PostgreSQL lets one
// happen at a time. Of letters at once, of work not more often than it helps. What is lost with this server is covered
// by polling.
Task<void> PostgresStore::run_notifier() {
  std::unique_ptr<Connection> connection;
  Limit timer(context_.get_executor());
  Duration work_from{};
  while (true) {
    const bool is_last = writers_left_ == 0 && !runs_contended_writer_;
    const Duration wait = work_from - host_.elapsed();
    const bool tells_work = pending_notifications_.work && (wait <= Duration{0} || is_last);
    if (!tells_work && pending_notifications_.letters.empty()) {
      if (is_last) co_return;
      if (pending_notifications_.work) timer.set(wait, [this] { news_.ring(); });
      co_await news_.wait();
      continue;
    }
    PendingNotifications telling{tells_work, std::exchange(pending_notifications_.letters, {})};
    if (tells_work) {
      pending_notifications_.work = false;
      work_from = host_.elapsed() + kNotifyEvery;
    }
    bool is_told = false;
    try {
      if (!connection || connection->is_lost()) connection = co_await open_connection();
      add_notify_statements(*connection, telling);
      co_await connection->run(settings_.reply_max);
      is_told = true;
    } catch (const Failure&) {
      connection.reset();
    }
    if (is_told || is_last) continue;
    // Who hears of something twice has lost nothing.
    enqueue_notifications(std::move(telling));
    co_await host_.wait(kNotifyRetryDelay);
  }
}

}  // namespace latchkey
