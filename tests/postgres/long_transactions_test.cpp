// Two stories of users' transactions in real time, beside each other: one holds a key for a minute, one commits what it
// enqueued two minutes later. The machine may be busy: who had to wait for whom, the server says.
#include <future>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

constexpr Duration kHeld = 60s, kLate = 120s, kPace = 50ms;
// Of any call, on a machine that may be busy. Whoever really waits for one of the two waits for a minute.
constexpr Duration kMostDelay = 5s;

// Callers of one store, one after the other: a claim and its settlement, a job enqueued, taken and settled.
class Others {
 public:
  Others(Store& store, Clock& clock, std::string prefix) : store_(store), clock_(clock), prefix_(std::move(prefix)) {}

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

// Claims the held key, again and again, until it is answered.
class Asker {
 public:
  explicit Asker(Store& store) : store_(store) { ask(); }
  int refused() const { return refused_; }
  bool is_answered() const { return answer_.wait_for(0s) == std::future_status::ready; }
  ClaimReply finish() { return answer_.get(); }

 private:
  void ask() {
    ClaimRequest same = a_claim("k");
    same.fingerprint.reset();
    store_.claim(same, [this](Result<ClaimReply> reply) {
      if (reply) return told_.set_value(std::move(*reply));
      EXPECT_EQ(reply.error().code, Code::STORE_UNAVAILABLE) << to_string(reply.error());
      ++refused_;
      if (reply.error().code == Code::STORE_UNAVAILABLE) ask();
    });
  }

  Store& store_;
  std::atomic<int> refused_{0};
  std::promise<ClaimReply> told_;
  std::future<ClaimReply> answer_ = told_.get_future();
};

class PostgresMinutes : public StoresTest {
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
  // One whose other callers want the key too, and one that has nothing to do with it.
  std::unique_ptr<PostgresStore> shared_ = open_named("shared");
  std::unique_ptr<PostgresStore> apart_ = open_named("apart");
};

TEST_F(PostgresMinutes, AHeldKeyDelaysOnlyItselfAndALateEnqueueNobody) {
  Others beside(*shared_, clock_, "beside"), far(*apart_, clock_, "far");
  const auto work = [&] { beside.work(), far.work(); };
  work();
  beside.worst = far.worst = {};  // without what it takes to connect

  PgClient holder = user(), late = user();
  const std::string begun =
      holder.ask_one("BEGIN; SELECT run || ''', ' || fence FROM latchkey.begin_run('f', 'k', lease => '1 h')");
  late.execute(
      "BEGIN; SELECT latchkey.enqueue('job', input => 'late'); "
      "SELECT latchkey.enqueue('job', 'late', input => 'late')");
  Asker asker(*shared_);
  const Duration start = clock_.elapsed();
  const auto work_until = [&](Duration end) {
    while (clock_.elapsed() - start < end) {
      work();
      std::this_thread::sleep_for(kPace);  // it is time that is tested: all of it
    }
  };
  work_until(kHeld);
  EXPECT_GT(asker.refused(), 0);
  EXPECT_FALSE(asker.is_answered()) << "nobody can know what becomes of it";
  holder.execute("COMMIT");
  EXPECT_TRUE(std::holds_alternative<Busy>(asker.finish())) << "the transaction that was first has it";
  EXPECT_EQ(holder.ask_one("SELECT status FROM latchkey.complete_run('" + begun + ", 'done')"), "completed");
  work_until(kLate);
  EXPECT_EQ(beside.taken.count("late") + far.taken.count("late"), 0u);
  late.execute("COMMIT");
  const Duration patience = clock_.elapsed() + 10s;
  while (beside.taken.count("late") + far.taken.count("late") < 2 && clock_.elapsed() < patience) work();
  work();

  std::multiset<std::string> taken = beside.taken;
  taken.insert(far.taken.begin(), far.taken.end());
  EXPECT_EQ(taken.count("late"), 2u) << "lost";
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(beside.rounds + far.rounds + 2)) << "everything else";
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), taken.size() - 1) << "and once";
  EXPECT_EQ(log_.waited_for(holder), std::set<std::string>{"shared"}) << "only who asks for the key waits for it";
  EXPECT_EQ(log_.waited_for(late), std::set<std::string>{});
  EXPECT_LT(beside.worst, kMostDelay);
  EXPECT_LT(far.worst, kMostDelay);
}

}  // namespace
}  // namespace latchkey
