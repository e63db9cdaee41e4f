// Two users' transactions in real time, side by side: one has a lock on a key for a minute, and one commits its jobs
// after two minutes. The machine may be busy, so the server's log shows which session waited for which.
#include <future>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/test_length.hpp"

namespace latchkey {
namespace {

constexpr Duration kPace = 50ms;
// The transactions end after so long. A caller of the locked key is rejected after 10 s.
const Duration kLocked = is_long_test_run() ? 60s : 12s, kLate = is_long_test_run() ? 120s : 15s;
// The longest call on a busy machine. A call that waits for one of the transactions takes longer.
constexpr Duration kDelayMax = 5s;

// A sequential caller of one store: it claims and settles a run, and enqueues, takes and settles a job.
class Worker {
 public:
  Worker(Store& store, Clock& clock, std::string prefix) : store_(store), clock_(clock), prefix_(std::move(prefix)) {}

  void work() {
    const std::string name = prefix_ + std::to_string(rounds++);
    std::optional<Won> won;
    timed([&] { won = std::get<Won>(verbs().claim(a_claim(name))); });
    timed([&] { verbs().settle({{}, won->run.id(), won->fence, Complete{"r", {}}}); });
    timed([&] { verbs().enqueue({.function = "job", .input = name}); });
    std::vector<Taken> some;
    timed([&] { some = verbs().take({.functions = {"job"}, .limit = 5, .session = id_of(5), .lease = 10min}); });
    for (const Taken& one : some) {
      taken.insert(one.run.head->input);
      timed([&] { verbs().settle({{}, one.run.id(), one.fence, Complete{"r", {}}}); });
    }
  }

  int rounds = 0;
  std::multiset<std::string> taken;
  Duration worst{};

 private:
  Verbs verbs() { return Verbs(store_); }
  void timed(auto act) {
    const Duration start = clock_.elapsed();
    act();
    worst = std::max(worst, clock_.elapsed() - start);
  }

  Store& store_;
  Clock& clock_;
  const std::string prefix_;
};

// Claims the contended key, and again after each rejection.
class ContendedClaim {
 public:
  explicit ContendedClaim(Store& store) : store_(store) { claim(); }
  int rejected() const { return rejected_; }
  bool is_answered() const { return answer_.wait_for(0s) == std::future_status::ready; }
  ClaimReply finish() { return answer_.get(); }

 private:
  void claim() {
    ClaimRequest same = a_claim("k");
    same.fingerprint.reset();
    store_.claim(same, [this](Result<ClaimReply> reply) {
      if (reply) return promise_.set_value(std::move(*reply));
      EXPECT_EQ(reply.error().code, Code::STORE_UNAVAILABLE) << to_string(reply.error());
      ++rejected_;
      if (reply.error().code == Code::STORE_UNAVAILABLE) claim();
    });
  }

  Store& store_;
  std::atomic<int> rejected_{0};
  std::promise<ClaimReply> promise_;
  std::future<ClaimReply> answer_ = promise_.get_future();
};

class LongTransactions : public StoresTest {
 protected:
  std::unique_ptr<PostgresStore> open_named(const std::string& name) {
    return open(server_.url() + "?application_name=" + name);
  }
  PgClient user() {
    PgClient session(server_.url());
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }

  PgCluster server_{LockLog::settings(10ms)};
  const LockLog log_{server_};
  // A store that also gets the contended claim, and one that does not.
  std::unique_ptr<PostgresStore> shared_ = open_named("shared");
  std::unique_ptr<PostgresStore> apart_ = open_named("apart");
};

TEST_F(LongTransactions, DelayOnlyCallersOfTheirKey) {
  Worker beside(*shared_, clock_, "beside"), far(*apart_, clock_, "far");
  const auto work = [&] { beside.work(), far.work(); };
  work();
  beside.worst = far.worst = {};  // ignore the time for connecting

  PgClient blocker = user(), late = user();
  const std::string begun =
      blocker.ask_one("BEGIN; SELECT run || ''', ' || fence FROM latchkey.begin_run('f', 'k', lease => '1 h')");
  late.execute(
      "BEGIN; SELECT latchkey.enqueue('job', input => 'late'); "
      "SELECT latchkey.enqueue('job', 'late', input => 'late')");
  ContendedClaim contended(*shared_);
  const Duration start = clock_.elapsed();
  const auto work_until = [&](Duration end) {
    while (clock_.elapsed() - start < end) {
      work();
      std::this_thread::sleep_for(kPace);  // the test takes the real time of the transactions
    }
  };
  work_until(kLocked);
  EXPECT_GT(contended.rejected(), 0);
  EXPECT_FALSE(contended.is_answered()) << "the reply came before the transaction ended";
  blocker.execute("COMMIT");
  EXPECT_TRUE(std::holds_alternative<Busy>(contended.finish())) << "the first transaction created the run";
  EXPECT_EQ(blocker.ask_one("SELECT status FROM latchkey.complete_run('" + begun + ", 'done')"), "completed");
  work_until(kLate);
  EXPECT_EQ(beside.taken.count("late") + far.taken.count("late"), 0u);
  late.execute("COMMIT");
  const Duration patience = clock_.elapsed() + 10s;
  while (beside.taken.count("late") + far.taken.count("late") < 2 && clock_.elapsed() < patience) work();
  work();

  std::multiset<std::string> taken = beside.taken;
  taken.insert(far.taken.begin(), far.taken.end());
  EXPECT_EQ(taken.count("late"), 2u) << "a late job was lost";
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(beside.rounds + far.rounds + 2)) << "all other jobs";
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), taken.size() - 1) << "a job was taken twice";
  EXPECT_EQ(log_.waiters_of(blocker), std::set<std::string>{"shared"}) << "another store waited for the key";
  EXPECT_EQ(log_.waiters_of(late), std::set<std::string>{});
  EXPECT_LT(beside.worst, kDelayMax);
  EXPECT_LT(far.worst, kDelayMax);
}

}  // namespace
}  // namespace latchkey
