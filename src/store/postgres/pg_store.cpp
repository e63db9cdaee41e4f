// Opening, shutdown and state that other threads read.
#include "store/postgres/pg_store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "pg/session_settings.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {
namespace {

// Reads run in a role that row-level security applies to: one tenant's as that tenant, those over all tenants as the
// engine. app.current_actor is cleared, because a pooled session may have set it. The server, too, stops at the limit.
pg::Statement read_settings_for(const std::optional<std::string>& tenant, Duration limit) {
  static const std::string settings = pg::make_settings(
      pg::SettingScope::transaction,
      {{"role", "$1"}, {"app.current_tenant", "$2"}, {"app.current_actor", "''"}, {"statement_timeout", "$3"}});
  return {settings, pg::Params()
                        .add(std::string_view(tenant ? "latchkey_tenant" : "latchkey_engine"))
                        .add(std::string_view(tenant ? *tenant : ""))
                        .add(std::string_view(std::to_string(std::max<std::int64_t>(limit.count(), 1))))};
}

}  // namespace

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(PostgresSettings settings, Clock& clock, Random& random) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(std::move(settings), clock, random));
  try {
    store->check_security();
    store->read_pool_.write({pg::sql().record_server_identity, {}});
    store->read_marks();
  } catch (const pg::Failure& failure) {
    const std::string why = failure.what();
    return fail(Code::STORE_UNAVAILABLE, why.contains("during recovery")
                                             ? "PostgreSQL: this server is a standby, read-only (" + why + ")"
                                             : "PostgreSQL: " + why);
  } catch (const TablesError& error) {
    return fail(error.code, error.what());
  }
  store->writers_left_ = store->settings_.writers;
  for (unsigned i = 0; i < store->settings_.writers; ++i) store->spawn(store->run_writer());
  store->spawn(store->run_contended_writer());
  store->spawn(store->reject_during_outage());
  store->spawn(store->notifier_.run());
  store->spawn(store->deadline_watch_.run());
  store->thread_ = std::thread([raw = store.get()] { raw->context_.run(); });
  return store;
}

PostgresStore::PostgresStore(PostgresSettings settings, Clock& clock, Random& random)
    : settings_(std::move(settings)),
      host_(clock),
      random_(random),
      clock_(clock, settings_.clock),
      read_pool_(settings_.url, settings_.readers, clock, settings_.reply_max, &read_settings_for),
      identity_({.now = [this] { return clock_.now(); },
                 .on_leases_ended = [this] { deadlines_.add(clock_.now()); },
                 .on_other_server = [this] { forget_last_server(); }}) {}

void PostgresStore::spawn(Task<void> task) {
  tasks_left_ += 1;
  boost::asio::co_spawn(context_, std::move(task), [this](const std::exception_ptr& exception) {
    // Abort: a restart is safe, but without this task some callers would never get a reply.
    if (exception) try {
        std::rethrow_exception(exception);
      } catch (const std::exception& error) {
        spdlog::critical("postgres: unexpected exception in a background task: {}", error.what());
      }
    LK_ASSERT(!exception);
    if (--tasks_left_ == 0) close_limit_.stop();  // a pending timer would block the thread's end
  });
}

void PostgresStore::begin_shutdown() {
  read_pool_.end_within(settings_.close_max);
  boost::asio::post(context_, [this] { start_shutdown(); });
}

void PostgresStore::start_shutdown() {
  if (tasks_left_ == 0 || std::exchange(is_shutting_down_, true)) return;
  start_shutdown_timer(Duration{0});
}

// Silent connections are closed after half of close_max: the other half remains to resolve their commits on others.
void PostgresStore::start_shutdown_timer(Duration since) {
  using SocketWaiters = pg::SocketWaiters;
  close_limit_.set(SocketWaiters::kTick, [this, now = since + SocketWaiters::kTick] {
    waiters_.on_tick(now < settings_.close_max / 2 ? SocketWaiters::Patience::endless
                     : now < settings_.close_max   ? SocketWaiters::Patience::some
                                                   : SocketWaiters::Patience::last);
    start_shutdown_timer(now);
  });
}

PostgresStore::~PostgresStore() {
  begin_shutdown();
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  boost::asio::post(context_, [this] { wake_.ring(); });
  if (thread_.joinable()) thread_.join();
  const Error closed{Code::SHUTTING_DOWN, "the store is closed"};
  for (auto& command : backlog_) command->finish(&closed);
}

void PostgresStore::check_security() {
  const pg::Rows problems = read_pool_.run(std::nullopt, {pg::sql().check_security, {}});
  if (problems.empty()) return;
  constexpr int kListedMax = 10;  // one GRANT on all tables causes dozens of problems
  std::string all;
  for (int row = 0; row < std::min(problems.size(), kListedMax); ++row)
    all += (row ? "; " : "") + std::string(problems.bytes(row, 0));
  if (problems.size() > kListedMax)
    all += fmt::format("; and {} more (SELECT * FROM latchkey.check_security())", problems.size() - kListedMax);
  throw TablesError(Code::STORE_FORMAT, "this database does not isolate tenants: " + all);
}

void PostgresStore::read_marks() {
  using namespace pg;
  const Rows state = read_pool_.run(std::nullopt, {sql().read_marks, {}});
  if (!state.is_null(0, 0)) deadlines_.set(from_ms(state.integer(0, 0)));
  clock_.start(from_ms(state.integer(0, 1)), state.integer(0, 2));
}

void PostgresStore::forget_last_server() {
  data_epoch_ += 1;
  counters_.forget();
  heads_.clear();
  tenants_.clear();
}

std::optional<Error> PostgresStore::find_failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void PostgresStore::set_failure(std::optional<Error> failure) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

}  // namespace latchkey
