// Connections as the lanes use them, and what is told to others on them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <limits>

#include "store/postgres/hosts.hpp"
#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

namespace {

// More than any server can have drawn that its successor does not know of.
constexpr std::int64_t kFencesLost = 1'000'000'000, kCountersLost = 1'000'000;

// Every transaction begins so. Plans must not depend on what the tables were like when they were last analysed, or on
// the first batch that came: every statement is made for its indexes.
std::string settings_for(bool session) {
  std::string sql;
  for (const auto& [name, value] : {std::pair{"role", "latchkey_engine"},
                                    {"search_path", "pg_catalog, pg_temp"},
                                    {"lock_timeout", "50ms"},
                                    {"enable_seqscan", "off"},
                                    {"enable_hashjoin", "off"},
                                    {"enable_mergejoin", "off"},
                                    {"enable_bitmapscan", "off"},
                                    {"jit", "off"},
                                    {"plan_cache_mode", "force_generic_plan"},
                                    {"idle_in_transaction_session_timeout", "5s"}})
    sql += fmt::format("{}set_config('{}', '{}', {})", sql.empty() ? "SELECT " : ", ", name, value, !session);
  return sql;
}

// The path is never the database's or the role's: what somebody put there, an operator say, would run as the engine.
constexpr const char* kAsEngine =
    "SELECT set_config('role', 'latchkey_engine', true), set_config('search_path', 'pg_catalog, pg_temp', true)";
constexpr const char* kHere =
    "(SELECT system_identifier::text AS system, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline "
    "FROM pg_control_system()) h";

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
  connection.add("SELECT pg_backend_pid()::bigint");
  const auto process = co_await connection.run(settings_.reply_max);
  if (!connection.is_served_by(process.back().integer(0, 0))) co_return;
  connection.add(settings_for(true));
  co_await connection.run(settings_.reply_max);
  connection.keep_plans();
}

void PostgresStore::begin(Connection& connection) {
  static const std::string settings = settings_for(false);
  connection.add("BEGIN ISOLATION LEVEL READ COMMITTED");
  if (!connection.does_keep_plans()) connection.add(settings);
}

// A connection that went silent may live on at the server's end, amid a transaction that holds what others need.
Task<void> PostgresStore::end_backend(Connection& connection, Attempt& attempt) {
  const auto [pid, since] = *std::exchange(attempt.backend, std::nullopt);
  // As who connected: the engine may neither see nor end another's session.
  connection.add("BEGIN");
  connection.add("SELECT set_config('role', 'none', true), set_config('search_path', 'pg_catalog, pg_temp', true)");
  connection.add(
      {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND xact_start = $2::text::timestamptz "
       "AND usename = session_user",
       Params().add(pid).add(std::string_view(since))});
  connection.add("COMMIT");
  co_await connection.run(settings_.reply_max);
}

// Another server than last time (a standby that was promoted, a backup that was restored) may not have what the last
// one promised: fences that were drawn there must not be drawn again, and who holds a lease by its word holds none.
Task<void> PostgresStore::look_around(Connection& connection) {
  connection.add(kAsEngine);
  connection.add(
      "SELECT FROM latchkey.place p WHERE p.system = (SELECT system_identifier::text FROM pg_control_system()) AND "
      "p.timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)");
  const auto same = co_await connection.run(settings_.reply_max);
  if (!same.back().empty()) co_return;
  connection.add("BEGIN ISOLATION LEVEL READ COMMITTED");
  // Everybody who comes here waits for who was first: one that went silent must not hold up them all.
  connection.add(
      "SELECT set_config('role', 'latchkey_engine', true), set_config('search_path', 'pg_catalog, pg_temp', true), "
      "set_config('lock_timeout', '5s', true), "
      "set_config('idle_in_transaction_session_timeout', '2s', true)");
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
        {"UPDATE latchkey.blocks SET lease_until = $1 WHERE lo IN (SELECT b.lo FROM latchkey.blocks b WHERE b.session "
         "IS NOT NULL AND b.lease_until > $1 FOR UPDATE SKIP LOCKED)",
         now});
    connection.add(
        {"UPDATE latchkey.states SET lease_until = $1, deadline = CASE deadline WHEN lease_until THEN $1 ELSE "
         "deadline END WHERE seq IN (SELECT s.seq FROM latchkey.states s WHERE s.status = 1 AND s.lease_until > $1 FOR "
         "UPDATE SKIP LOCKED)",
         now});
    next_deadline_ms_ = to_ms(clock_->now());
  }
  connection.add("COMMIT");
  co_await connection.run(settings_.reply_max);
}

void PostgresStore::note_place() {
  sessions_.run(std::nullopt,
                {std::string("INSERT INTO latchkey.place (system, timeline) SELECT h.system, h.timeline FROM ") +
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
      connection->add(kNextDeadline);
      const auto results = co_await connection->run(settings_.reply_max);
      next_deadline_ms_ = question.answer(results.back());
    } catch (const Failure&) {
      connection.reset();
    }
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
      connection->add("SELECT pg_notify('latchkey_work', '')");
      co_await connection->run(settings_.reply_max);
    } catch (const Failure&) {
      connection.reset();
    }
    co_await host_.wait(kNewsEvery);
  }
}

}  // namespace latchkey
