#include "store/postgres/pg_store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(PostgresSettings settings, Clock& clock, Random& random) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(std::move(settings), clock, random));
  try {
    store->check_security();
    store->record_server_identity();
    store->read_marks();
  } catch (const pg::Failure& failure) {
    const std::string why = failure.what();
    return fail(Code::STORE_UNAVAILABLE, why.contains("during recovery")
                                             ? "PostgreSQL: this server is a standby, read-only (" + why + ")"
                                             : "PostgreSQL: " + why);
  } catch (const TablesError& error) {
    return fail(error.code, error.what());
  }
  store->writers_left_ = store->settings_.lanes;
  for (unsigned lane = 0; lane < store->settings_.lanes; ++lane) store->spawn(store->work());
  store->spawn(store->run_contended_writer());
  store->spawn(store->reject_waiting());
  store->spawn(store->run_notifier());
  store->spawn(store->watch_deadline());
  store->thread_ = std::thread([raw = store.get()] { raw->context_.run(); });
  return store;
}

PostgresStore::PostgresStore(PostgresSettings settings, Clock& clock, Random& random)
    : settings_(std::move(settings)),
      host_(clock),
      random_(random),
      database_clock_(clock),
      sessions_(settings_.url, settings_.readers, clock, settings_.reply_max),
      next_deadline_ms_(kNever) {}

void PostgresStore::spawn(Task<void> task) {
  tasks_left_ += 1;
  boost::asio::co_spawn(context_, std::move(task), [this](const std::exception_ptr& unforeseen) {
    // Callers would wait for ever: to begin anew is safe, to go on with a lane less is not.
    if (unforeseen) try {
        std::rethrow_exception(unforeseen);
      } catch (const std::exception& what) {
        spdlog::critical("postgres: a task ended by an error: {}", what.what());
      }
    LK_ASSERT(!unforeseen);
    if (--tasks_left_ == 0) close_limit_.stop();  // or the thread would wait for it
  });
}

void PostgresStore::begin_shutdown() {
  sessions_.end_within(settings_.close_max);
  boost::asio::post(context_, [this] { start_closing(); });
}

void PostgresStore::start_closing() {
  if (tasks_left_ == 0 || std::exchange(closes_soon_, true)) return;
  start_shutdown_timer(Duration{0});
}

// A connection that is silent is given up while there is time to ask on another one what became of its commit.
void PostgresStore::start_shutdown_timer(Duration since) {
  using SocketWaiters = pg::SocketWaiters;
  close_limit_.set(SocketWaiters::kMoment, [this, now = since + SocketWaiters::kMoment] {
    waits_.on_tick(now < settings_.close_max / 2 ? SocketWaiters::Patience::endless
                   : now < settings_.close_max   ? SocketWaiters::Patience::some
                                                 : SocketWaiters::Patience::last);
    start_shutdown_timer(now);
  });
}

PostgresStore::~PostgresStore() {
  begin_shutdown();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  boost::asio::post(context_, [this] { wake_.ring(); });
  if (thread_.joinable()) thread_.join();
  const Error closed{Code::SHUTTING_DOWN, "the store is closed"};
  for (auto& command : waiting_) command->finish(&closed);
}

void PostgresStore::check_security() {
  const pg::Rows problems = sessions_.run(std::nullopt, {pg::sql().check_security, {}});
  if (problems.empty()) return;
  constexpr int kTold = 10;  // one GRANT on all tables makes dozens
  std::string all;
  for (int row = 0; row < std::min(problems.size(), kTold); ++row)
    all += (row ? "; " : "") + std::string(problems.bytes(row, 0));
  if (problems.size() > kTold)
    all += fmt::format("; and {} more (SELECT * FROM latchkey.check_security())", problems.size() - kTold);
  throw TablesError(Code::STORE_FORMAT, "tenants are not kept apart in this database: " + all);
}

void PostgresStore::read_marks() {
  using namespace pg;
  const Rows state = sessions_.run(std::nullopt, {sql().read_marks, {}});
  if (!state.is_null(0, 0)) next_deadline_ms_ = state.integer(0, 0);
  database_clock_.set(from_ms(state.integer(0, 1)));
  Clock& clock = settings_.clock ? *settings_.clock : static_cast<Clock&>(database_clock_);
  clock_mark_ms_ = state.integer(0, 2);
  // The mark is ahead of what was used: only a clock that was set back needs it.
  const bool was_set_back = to_ms(clock.now()) + kMarkAhead.count() < clock_mark_ms_;
  // A test's clock is every store's: nobody is ahead of anybody by it.
  const auto ahead = settings_.clock ? StoreClock::Ahead::keeps_pace : StoreClock::Ahead::slows_down;
  clock_.emplace(clock, was_set_back ? from_ms(clock_mark_ms_) : Instant{}, ahead);
}

std::optional<Instant> PostgresStore::next_deadline() {
  const std::int64_t ms = next_deadline_ms_;
  return ms == kNever ? std::nullopt : std::optional(from_ms(ms));
}

std::optional<Error> PostgresStore::find_failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void PostgresStore::tell_failure(std::optional<Error> failure) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

}  // namespace latchkey
