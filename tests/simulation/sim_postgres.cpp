#include "simulation/sim_postgres.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/assert.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_server.hpp"

namespace latchkey::sim {
namespace {

// One database for all worlds, emptied by each: creating it takes longer than most worlds.
const std::string& shared_database() {
  static const std::string url = [] {
    std::string made = PgServer::instance().borrow_database();
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(LATCHKEY_SOURCE_DIR "/migrations"))
      if (entry.path().string().ends_with(".up.sql")) files.push_back(entry.path());
    std::ranges::sort(files);
    PgClient client(made);
    for (const auto& file : files) {
      std::stringstream text;
      text << std::ifstream(file).rdbuf();
      client.execute("BEGIN; " + text.str() + "; COMMIT");
    }
    return made;
  }();
  return url;
}

}  // namespace

SimPostgres::SimPostgres(Clock& clock, Random& random)
    : clock_(clock), host_clock_(clock), dice_(random.next()), url_(shared_database()) {
  PgServer::empty(url_);
  if (dice_.one_in(2)) user_ = std::make_unique<PgClient>(url_);
  locks_dead_letters_ = dice_.one_in(2);
  if (dice_.one_in(2)) {
    proxy_ = std::make_unique<FaultProxy>(PgServer::instance().port());
    url_ = proxy_->url(url_.substr(url_.rfind('/') + 1));
  }
  open();
}

void SimPostgres::open() {
  hosts_.resize(1 + dice_.below(2));
  std::vector<Store*> stores;
  for (Host& host : hosts_) {
    host.random = std::make_unique<SeededRandom>(dice_.next());
    const auto writers = static_cast<unsigned>(1 + dice_.below(3));
    // A single host does not coalesce batches.
    const std::size_t coalesce_below = hosts_.size() == 1 ? 0 : PostgresSettings{}.coalesce_below;
    auto opened = PostgresStore::open({.url = url_,
                                       .writers = writers,
                                       .readers = 1,
                                       .coalesce_below = coalesce_below,
                                       .clock = &clock_,
                                       .close_max = std::chrono::milliseconds{200}},
                                      host_clock_, *host.random);
    LK_ASSERT(opened);
    host.store = std::move(*opened);
    stores.push_back(host.store.get());
  }
  queue_ = std::make_unique<QueuedStore>(std::move(stores), dice_);
  queue_->release_locks = [this] { release_locks(); };
  // Long enough for the store to detect that another transaction is inserting the dead letter that it needs.
  if (locks_dead_letters_) queue_->stuck_after = std::chrono::milliseconds{150};
}

// Locks rows as a user's program may. It changes no row except for the acknowledgement of a dead letter.
void SimPostgres::lock_rows() {
  static constexpr const char* kRows[] = {
      "SELECT 1 FROM latchkey.states WHERE status < 2 ORDER BY seq DESC LIMIT 4 FOR UPDATE SKIP LOCKED",
      "SELECT 1 FROM latchkey.blocks ORDER BY lo DESC LIMIT 2 FOR UPDATE SKIP LOCKED",
      "SELECT 1 FROM latchkey.runs ORDER BY seq DESC LIMIT 4 FOR UPDATE SKIP LOCKED",
      "SELECT 1 FROM latchkey.dead_letters FOR UPDATE SKIP LOCKED"};
  constexpr std::size_t kWays = std::size(kRows) + 3, kDeadLetterWays = 4;
  steps_locked_ = 1 + dice_.below(6);
  std::string sql = "BEGIN; SET LOCAL lock_timeout = '20ms'; ";
  const std::string now = std::to_string(to_ms(clock_.now()));
  switch (const auto what = locks_dead_letters_ ? kWays - 1 - dice_.below(kDeadLetterWays) : dice_.below(kWays)) {
    case std::size(kRows):
      sql += "UPDATE latchkey.dead_letters SET acknowledged_by = 'a user', acknowledged_at = " + now +
             " WHERE number = (SELECT number FROM latchkey.dead_letters WHERE acknowledged_at IS NULL LIMIT 1 FOR "
             "UPDATE SKIP LOCKED)";
      break;
    case std::size(kRows) + 1:
    case std::size(kRows) + 2:  // for functions without an open entry; it is never committed
      sql +=
          "INSERT INTO latchkey.dead_letters (number, id, tenant, function, code, reason, latest_run, count, "
          "opened_at, updated_at, acknowledged_by) SELECT -row_number() OVER (), gen_random_uuid(), t, f, '', '', "
          "gen_random_uuid(), "
          "1, " +
          now + ", " + now +
          ", '' FROM unnest(ARRAY['acme', 'globex']) t, unnest(ARRAY['job', 'pay', 'mail', 'sync', 'next']) f ON "
          "CONFLICT DO NOTHING";
      break;
    default:
      sql += kRows[what];
  }
  must_undo_ = sql.contains("INSERT");
  try {
    user_->execute(sql);
  } catch (const std::runtime_error&) {
    release_locks();  // a cut connection's backend still has locks
  }
}

void SimPostgres::release_locks() {
  if (steps_locked_ == 0) return;
  steps_locked_ = 0;
  user_->execute(must_undo_ || dice_.one_in(2) ? "ROLLBACK" : "COMMIT");
}

void SimPostgres::stop_faults() {
  if (user_) release_locks();
  user_.reset();
}

std::string SimPostgres::find_contradiction() {
  PgClient reader(shared_database());
  return PgServer::find_contradiction(reader);
}

// Except with `late`, no COMMIT is on its way to the server afterwards.
void SimPostgres::arm(std::vector<FaultHow> ways) {
  static constexpr FaultAt kPoints[] = {FaultAt::flight_request, FaultAt::commit_request, FaultAt::commit_reply};
  proxy_->arm({.at = kPoints[dice_.below(std::size(kPoints))],
               .how = ways[dice_.below(ways.size())],
               .after = dice_.below(2),
               .delay = std::chrono::milliseconds{dice_.below(3)}});
}

std::size_t SimPostgres::step() {
  const bool cuts = proxy_ && dice_.one_in(10);
  if (cuts) arm({FaultHow::close, FaultHow::reset, FaultHow::late});
  if (user_ && steps_locked_ == 0 && dice_.one_in(locks_dead_letters_ ? 2 : 8)) lock_rows();
  const std::size_t commands = queue_->step();
  if (steps_locked_ == 1) release_locks();
  if (steps_locked_ > 1) steps_locked_ -= 1;
  if (cuts) proxy_->arm(std::deque<ConnectionFault>{});
  return commands;
}

// Waits a moment for the armed fault on one connection, then stops all forwarding.
void SimPostgres::silence_server() {
  SystemClock machine;
  const auto fired = proxy_->fired();
  const Duration most = machine.elapsed() + std::chrono::milliseconds{20};
  while (proxy_->fired() == fired && machine.elapsed() < most) {
  }
  proxy_->blackhole_all();
}

// The pending commands are lost, or executed without a reply, or interrupted during execution.
void SimPostgres::crash() {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);  // a crashed server logs nothing
  const bool is_silent = proxy_ && dice_.one_in(4);
  if (is_silent) {
    arm({FaultHow::blackhole});
    queue_->submit_commands();
    silence_server();
  } else if (!dice_.one_in(3)) {
    if (proxy_ && !dice_.one_in(3)) arm({FaultHow::close, FaultHow::reset});
    queue_->submit_commands();
  }
  hosts_.clear();
  queue_.reset();
  if (is_silent) proxy_->cut_all();
  if (proxy_) proxy_->arm(std::deque<ConnectionFault>{});
  spdlog::set_level(level);
  open();
}

}  // namespace latchkey::sim
