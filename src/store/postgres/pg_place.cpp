// Connections as the lanes use them, and what is told to others on them.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/postgres/hosts.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/presence.hpp"
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

// The path is never the database's or the role's: what somebody put there, an operator say, would run as the engine.
constexpr const char* kAsEngine =
    "SELECT pg_catalog.set_config('role', 'latchkey_engine', true), "
    "pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)";
}  // namespace

Task<std::unique_ptr<Connection>> PostgresStore::connect() {
  auto connection = co_await connect_plainly();
  std::optional<Failure> failure;
  try {
    co_await look_around(*connection);
    if (keeps_plans_) co_await settle_in(*connection);
  } catch (const Failure& found) {
    failure.emplace(found.state, found.what(), true);  // whatever it was: there is no connection
  }
  if (failure) throw *failure;
  co_return connection;
}

// The first host that answers.
Task<std::unique_ptr<Connection>> PostgresStore::connect_plainly() {
  const auto hosts = split_hosts(settings_.url);
  for (std::size_t i = 0;; ++i) {
    std::optional<Failure> failure;
    try {
      co_return co_await Connection::connect(waits_, hosts[i].conninfo,
                                             std::min(hosts[i].patience, settings_.reply_max));
    } catch (const Failure& found) {
      failure.emplace(found);
    }
    if (i + 1 == hosts.size()) throw *failure;
  }
}

// What every transaction needs is said once where the session is ours for good; behind a pooler each says it itself.
Task<void> PostgresStore::settle_in(Connection& connection) {
  connection.add("SELECT pg_catalog.pg_backend_pid()::bigint");
  const auto process = co_await connection.run(settings_.reply_max);
  if (!connection.is_served_by(process.back().integer(0, 0))) co_return;
  connection.add(settings_for(Lasting::session));
  co_await connection.run(settings_.reply_max);
  connection.keep_plans();
}

void PostgresStore::begin(Connection& connection) {
  static const std::string settings = settings_for(Lasting::transaction);
  connection.add("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
  if (!connection.does_keep_plans()) connection.add(settings);
}

// A connection that went silent may live on at the server's end, amid a transaction that holds what others need. Only
// one that waits for us is ended: a commit that waits for its standby would be shown to everybody, and the standby may
// never have it.
Task<void> PostgresStore::end_backend(Connection& connection, Attempt& attempt) {
  const auto [pid, since] = *attempt.backend;
  // As who connected: the engine may neither see nor end another's session.
  connection.add("BEGIN");
  connection.add(
      "SELECT pg_catalog.set_config('role', 'none', true), "
      "pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)");
  connection.add(
      {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND xact_start = $2::text::timestamptz "
       "AND usename = session_user AND wait_event_type = 'Client'",
       Params().add(pid).add(std::string_view(since))});
  connection.add("COMMIT");
  co_await connection.run(settings_.reply_max);
  // Not before: where this connection goes silent too, the next one has to end it.
  attempt.backend.reset();
}

// Another server than last time (a standby that was promoted, a backup that was restored) may not have what the last
// one promised: fences that were drawn there must not be drawn again, and who holds a lease by its word holds none.
Task<void> PostgresStore::look_around(Connection& connection) {
  connection.add(kAsEngine);
  connection.add(std::string("SELECT h.system || ' ' || h.timeline, (p.system, p.timeline) = (h.system, h.timeline) "
                             "FROM latchkey.place p, ") +
                 kHere);
  const auto found = co_await connection.run(settings_.reply_max);
  const std::string here(found.back().empty() ? "" : found.back().bytes(0, 0));
  if (!found.back().empty() && found.back().boolean(0, 1)) co_return see_place(here);
  connection.add("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
  // Everybody who comes here waits for who was first: one that went silent must not hold up them all.
  connection.add(
      "SELECT pg_catalog.set_config('role', 'latchkey_engine', true), "
      "pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), "
      "pg_catalog.set_config('lock_timeout', '5s', true), pg_catalog.set_config('enable_seqscan', 'off', true), "
      "pg_catalog.set_config('idle_in_transaction_session_timeout', '2s', true)");
  connection.add(std::string("UPDATE latchkey.place p SET system = h.system, timeline = h.timeline FROM ") + kHere +
                 " WHERE (p.system, p.timeline) IS DISTINCT FROM (h.system, h.timeline) RETURNING h.timeline");
  const auto moved = co_await connection.run(settings_.reply_max);
  if (!moved.back().empty()) {
    spdlog::warn("postgres: this is another server than before (timeline {}): all leases end, fences jump",
                 moved.back().bytes(0, 0));
    const Params now = Params().add(to_ms(clock_->now()));
    connection.add(
        {"SELECT setval('latchkey.fences', last_value + $1) FROM latchkey.fences", Params().add(kFencesLost)});
    connection.add(
        {"SELECT setval('latchkey.counters', last_value + $1) FROM latchkey.counters", Params().add(kCountersLost)});
    // But for what somebody holds: whoever does has asked this server, by its word, since it became the one. Their
    // leases end by themselves.
    connection.add(
        {"UPDATE latchkey.blocks SET lease_until = $1 WHERE ctid = ANY(ARRAY(SELECT b.ctid FROM latchkey.blocks b "
         "WHERE "
         "b.session IS NOT NULL AND b.lease_until > $1 FOR UPDATE SKIP LOCKED))",
         now});
    connection.add(
        {"UPDATE latchkey.states SET lease_until = $1, deadline = CASE deadline WHEN lease_until THEN $1 ELSE "
         "deadline END WHERE ctid = ANY(ARRAY(SELECT s.ctid FROM latchkey.states s WHERE s.deadline IS NOT NULL AND "
         "s.status = 1 AND s.lease_until > $1 FOR UPDATE SKIP LOCKED))",
         now});
    note_deadline(clock_->now());
  }
  connection.add("COMMIT");
  co_await connection.run(settings_.reply_max);
  // Not before: a lane behind a pooler takes it for a place where fences have jumped.
  if (!here.empty()) see_place(here);
}

// What was kept in memory of another server's answers may be lost here.
void PostgresStore::see_place(std::string_view name) {
  if (place_ == name) return;
  const bool is_first = place_.empty();
  place_ = name;
  if (is_first) return;
  era_ += 1;
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
  connection.add(
      {"SELECT setval('latchkey.clock', greatest(last_value, $1)) FROM latchkey.clock", Params().add(clock_mark_ms_)});
}

void PostgresStore::note_place() {
  sessions_.write({std::string("INSERT INTO latchkey.place (system, timeline) SELECT h.system, h.timeline FROM ") +
                       kHere + " WHERE NOT EXISTS (SELECT FROM latchkey.place) ON CONFLICT DO NOTHING",
                   {}});
}

// What other hosts have written is nobody's but theirs until they die: whoever is left must hear of it.
Task<void> PostgresStore::watch_deadline() {
  std::unique_ptr<Connection> connection;
  Limit timer(context_.get_executor());
  while (true) {
    if (lanes_left_ == 0) co_return;
    timer.set(kDeadlineEvery, [this] { tick_.ring(); });
    co_await tick_.wait();
    if (lanes_left_ == 0) co_return;
    const DeadlineQuestion question(*this);
    try {
      if (!connection || connection->is_lost()) connection = co_await connect_plainly();
      connection->add(kAsEngine);
      connection->add(kPlace);
      connection->add(std::string("SELECT ") + kClock + ", last_value FROM latchkey.clock");
      connection->add(kNextDeadline);
      const auto results = co_await connection->run(settings_.reply_max);
      const Rows& clock = results[results.size() - 2];
      if (results[results.size() - 3].bytes(0, 0) != place_) {
        co_await look_around(*connection);
        continue;  // what was answered is older than that
      }
      see_clock(from_ms(clock.integer(0, 0)), clock.integer(0, 1));
      // Others are to know of a time that they cannot read from the database.
      const Instant now = clock_->now();
      if (!settings_.clock && now > from_ms(clock.integer(0, 0)) + kMarkAhead && to_ms(now) >= clock_mark_ms_) {
        connection->add(kAsEngine);
        add_clock_mark(*connection, now);
      }
      next_deadline_ms_ = question.answer(results.back());
      co_await show_presence(*connection);
    } catch (const Failure&) {
      connection.reset();
    }
  }
}

// Waits for whoever looks, or keeps us from it, but not for long: leases that end are watched for on the same
// connection.
Task<void> PostgresStore::show_presence(Connection& connection) {
  connection.add(kAsEngine);
  connection.add("SELECT set_config('lock_timeout', '500ms', true)");
  connection.add(kShowPresence);
  try {
    co_await connection.run(settings_.reply_max);
  } catch (const Failure& found) {
    if (found.lost) throw;
  }
}

// What others write while it is asked, the answer does not know of.
PostgresStore::DeadlineQuestion::DeadlineQuestion(PostgresStore& store)
    : store_(store), written_(store.questions_.insert(store.questions_.end(), kNever)) {}
PostgresStore::DeadlineQuestion::~DeadlineQuestion() { store_.questions_.erase(written_); }
std::int64_t PostgresStore::DeadlineQuestion::answer(const Rows& rows) const {
  return rows.is_null(0, 0) ? *written_ : std::min(rows.integer(0, 0), *written_);
}

void PostgresStore::note_deadline(Instant written) {
  next_deadline_ms_ = std::min<std::int64_t>(next_deadline_ms_, to_ms(written));
  for (std::int64_t& one : questions_) one = std::min(one, to_ms(written));
}

// Tells whoever listens that there is work, apart from the commits that made it: a NOTIFY lets one commit happen at a
// time. One that is lost with this server is covered by polling.
Task<void> PostgresStore::tell_news() {
  std::unique_ptr<Connection> connection;
  while (true) {
    while (!has_news_) {
      if (lanes_left_ == 0) co_return;
      co_await news_.wait();
    }
    has_news_ = false;
    try {
      if (!connection || connection->is_lost()) connection = co_await connect_plainly();
      connection->add("SELECT pg_catalog.pg_notify('latchkey_work', '')");
      co_await connection->run(settings_.reply_max);
    } catch (const Failure&) {
      connection.reset();
    }
    co_await host_.wait(kNewsEvery);
  }
}

}  // namespace latchkey
