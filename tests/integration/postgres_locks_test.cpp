// Others in the same database: users' open transactions, readers and dumps. What they hold delays what needs it, and
// nobody else.
#include <latch>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "integration/pg_bystander.hpp"
#include "integration/pg_crowd.hpp"
#include "integration/pg_stores.hpp"
#include "support/pg_cluster.hpp"
#include "support/pg_program.hpp"

namespace latchkey {
namespace {

// What nobody may be held up by, beside what takes as long when nobody is in the way, and what holds up a bystander who
// needs none of it.
constexpr Duration kDelay = 100ms;
// A machine stalls now and then, whatever anybody holds: so many calls may take longer, and none of them very long.
constexpr int kStalls = 2;
constexpr Duration kStall = 1s;

class PostgresLocks : public PostgresStores {
 protected:
  using Run = latchkey::Run;
  Verbs one() { return Verbs(*one_); }
  Verbs two() { return Verbs(*two_); }
  Duration timed(auto act) {
    const Duration start = clock_.elapsed();
    act();
    return clock_.elapsed() - start;
  }
  // How long claims of others and their settlements take, one after another, until `enough()`.
  std::vector<Duration> measure(const std::string& prefix, auto enough) {
    std::vector<Duration> taken;
    for (int i = 0; i < 10 || !enough(); ++i) {
      std::optional<Won> won;
      const Duration claim = timed([&] { won = std::get<Won>(one().claim(a_claim(prefix + std::to_string(i)))); });
      const Duration settle = timed([&] { one().settle({{}, won->run.id(), won->fence, Complete{"r", {}}}); });
      taken.insert(taken.end(), {claim, settle});
    }
    return taken;
  }
  static void expect_no_delay(const std::vector<Duration>& taken, Duration usual) {
    EXPECT_LE(std::ranges::count_if(taken, [&](Duration one) { return one > usual + kDelay; }), kStalls)
        << "of " << taken.size() << " calls, which take " << usual.count() << " ms at most";
    EXPECT_LT(std::ranges::max(taken), usual + kStall);
  }

  PgClient user() {
    PgClient session(url());
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }
  // The same without anybody in the way, on a machine that may be busy; the connections are open then.
  Duration usual() {
    measure("first", [] { return true; });
    int asked = 0;
    return std::ranges::max(measure("usual", [&] { return ++asked >= 60; }));
  }

  std::unique_ptr<Store> one_ = open(url());
  std::unique_ptr<Store> two_ = open(url());
};

// A key that somebody's open transaction has just begun: its row is new, nobody but that transaction can see it. Ten
// who want it too, some of them beside another key in one call, while 200 callers go on with keys of their own, until
// the store has lost patience with it.
class PostgresHeldKey : public PostgresLocks {
 protected:
  static constexpr int kWaiting = 10, kCallers = 200;
  static constexpr Duration kMostDelay = 300ms;
  struct Told {
    std::atomic<int> refused{0}, standing{0}, made{0};
    std::latch all{kWaiting};
  };

  void SetUp() override {
    one_ = open(url(), {.patience = 2s});
    Crowd(*one_, clock_, "first", kCallers).wait_for_answers(3 * kCallers);
    {
      Crowd crowd(*one_, clock_, "usual", kCallers);
      crowd.wait_for_answers(20 * kCallers);
      usual_ = crowd.finish();
    }
    const std::string begun = holder_.ask_one("BEGIN; SELECT run || ' ' || fence FROM latchkey.begin_run('f', 'k')");
    run_ = begun.substr(0, begun.find(' '));
    fence_ = begun.substr(begun.find(' ') + 1);
    bystander_.emplace(url(), clock_);
    crowd_.emplace(*one_, clock_, "others", kCallers);
    crowd_->wait_for_answers(kCallers);
    for (int i = 0; i < kWaiting; ++i) ask(i);
    while (told_.refused < kWaiting) crowd_->wait_for_answers(kCallers);
    EXPECT_EQ(told_.standing + told_.made, 0) << "nobody can know what becomes of it";
  }
  void TearDown() override {
    told_.all.wait();
    const std::uint64_t before = crowd_->answered();
    crowd_->wait_for_answers(kCallers);
    EXPECT_GT(crowd_->answered(), before);
    const Duration longest = crowd_->finish();
    EXPECT_LT(longest, usual_ + bystander_->longest() + kMostDelay)
        << usual_.count() << " ms as usual, a bystander " << bystander_->longest().count();
  }
  // Until it is answered.
  void ask(int number) {
    const auto refuse = [this, number](const Error& error) {
      EXPECT_EQ(error.code, Code::STORE_UNAVAILABLE) << to_string(error);
      ++told_.refused;
      ask(number);
    };
    if (number % 2 == 0) {
      ClaimRequest same = a_claim("k");
      same.fingerprint.reset();
      return one_->claim(same, [this, refuse](Result<ClaimReply> reply) {
        if (!reply) return refuse(reply.error());
        ++(std::holds_alternative<Won>(*reply) ? told_.made : told_.standing);
        told_.all.count_down();
      });
    }
    EnqueueRequest same = a_job("k");
    same.fingerprint.reset();
    const std::string beside = "beside" + std::to_string(number);
    one_->enqueue({same, a_job(beside)}, [this, refuse](Result<std::vector<EnqueueReply>> replies) {
      if (!replies) return refuse(replies.error());
      ++(std::get<Enqueued>(replies->at(0)).duplicate ? told_.standing : told_.made);
      EXPECT_FALSE(std::get<Enqueued>(replies->at(1)).duplicate) << "what was refused was not done";
      told_.all.count_down();
    });
  }

  Duration usual_{};
  PgClient holder_ = user();
  std::string run_, fence_;
  Told told_;
  std::optional<Bystander> bystander_;
  std::optional<Crowd> crowd_;
};

TEST_F(PostgresHeldKey, DelaysNobodyElseAndStandsOnceCommitted) {
  holder_.execute("COMMIT");
  told_.all.wait();
  EXPECT_EQ(told_.standing, kWaiting) << "the transaction that was first has it";
  holder_.execute("SELECT latchkey.complete_run('" + run_ + "', " + fence_ + ", 'done')");
  ClaimRequest same = a_claim("k");
  same.fingerprint.reset();
  EXPECT_EQ(std::get<Replay>(one().claim(same)).run.as<Completed>()->result, "done");
}

TEST_F(PostgresHeldKey, DelaysNobodyElseAndIsFreeOnceRolledBack) {
  holder_.execute("ROLLBACK");
  told_.all.wait();
  EXPECT_EQ(told_.made, 1) << "one of those who waited";
  EXPECT_EQ(told_.standing, kWaiting - 1);
}

// Ids are drawn when it enqueues, seen when it commits: whoever reads on from the last id that it saw would lose it. By
// the stores' clock it commits two minutes later.
TEST_F(PostgresLocks, AJobThatCommitsTwoMinutesLaterIsNeitherLostNorInTheWay) {
  ManualClock clock(clock_.now());
  one_ = open(url(), {.clock = &clock});
  two_ = open(url(), {.clock = &clock});
  const Duration unhindered = usual();
  PgClient late = user();
  late.execute(
      "BEGIN; SELECT latchkey.enqueue('f', input => 'late'); SELECT latchkey.enqueue('f', 'k', input => 'late')");
  std::multiset<std::string> taken;
  std::vector<Duration> calls;
  const Bystander bystander(url(), clock_);
  const auto work = [&](int number) {
    calls.push_back(timed([&] { two().enqueue({.function = "f", .input = std::to_string(number)}); }));
    std::vector<Taken> some;
    calls.push_back(timed([&] { some = one().take({.functions = {"f"}, .limit = 5, .session = id_of(5)}); }));
    for (const Taken& one_of : some) {
      taken.insert(one_of.run.head->input);
      calls.push_back(timed([&] { one().settle({{}, one_of.run.id(), one_of.fence, Complete{"r", {}}}); }));
    }
  };
  for (int i = 1; i <= 60; ++i) {
    clock.advance(2s);
    work(i);
  }
  expect_no_delay(calls, unhindered + bystander.longest());
  EXPECT_EQ(taken.size(), 60u) << "everything else";
  EXPECT_EQ(taken.count("late"), 0u);
  late.execute("COMMIT");
  for (int i = 61; i <= 70; ++i) work(i);
  EXPECT_EQ(taken.count("late"), 2u);
  EXPECT_EQ(taken.size(), 72u) << "70 of its own and the two";
  one_.reset();  // before the clock
  two_.reset();
}

// Many that wait must not take all the lanes.
TEST_F(PostgresLocks, ManyThatWaitForHeldKeysDoNotDelayOthers) {
  const Duration unhindered = usual();
  constexpr int kHeld = 20;
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.begin_run('f', 'held' || i) FROM generate_series(0, 19) i");
  struct Answers {
    std::latch all{kHeld};
    std::atomic<int> busy{0};
  };
  auto answers = std::make_shared<Answers>();
  const auto held = [](int i) {
    ClaimRequest request = a_claim("held" + std::to_string(i));
    request.fingerprint.reset();
    return request;
  };
  for (int i = 0; i < kHeld; ++i)
    one_->claim(held(i), [answers](Result<ClaimReply> reply) {
      if (reply && std::holds_alternative<Busy>(*reply)) ++answers->busy;
      answers->all.count_down();
    });
  const Bystander bystander(url(), clock_);
  int asked = 0;
  const auto calls = measure("free", [&] { return ++asked >= 60; });
  expect_no_delay(calls, unhindered + bystander.longest());
  EXPECT_EQ(answers->busy, 0) << "the test did not test";
  holder.execute("COMMIT");
  answers->all.wait();
  EXPECT_EQ(answers->busy, kHeld);
}

// Six callers of two stores, each with the same keys in another order. The server looks for deadlocks well before the
// stores lose patience with a lock, and says of each that it finds.
TEST_F(PostgresLocks, BatchesInOppositeOrderDoNotDeadlock) {
  constexpr int kThreads = 6, kRounds = 25, kKeys = 40;
  PgCluster server({"deadlock_timeout=10ms"});
  one_ = open(server.url());
  two_ = open(server.url());
  const auto has_deadlocked = [&] { return server.log().find("deadlock detected") != std::string::npos; };
  std::atomic<int> made{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        Store& store = thread % 2 ? *one_ : *two_;
        for (int round = 0; round < kRounds; ++round) {
          std::vector<EnqueueRequest> jobs;
          for (int i = 0; i < kKeys; ++i)
            jobs.push_back(a_job(std::to_string(round) + ":" + std::to_string(thread % 2 ? i : kKeys - 1 - i)));
          for (const auto& reply : Verbs(store).enqueue_all(jobs))
            if (!std::get<Enqueued>(reply).duplicate) ++made;
        }
      });
  }
  EXPECT_EQ(made, kRounds * kKeys) << "one run for each key";

  // Then the same runs, settled by both in opposite order: one of the two is accepted.
  std::vector<Taken> taken;
  while (true) {
    const auto some = one().take({.functions = {"f"}, .limit = 200, .session = id_of(5)});
    if (some.empty()) break;
    taken.insert(taken.end(), some.begin(), some.end());
  }
  ASSERT_EQ(taken.size(), static_cast<std::size_t>(kRounds * kKeys));
  std::atomic<int> changed{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 2; ++thread)
      threads.emplace_back([&, thread] {
        for (std::size_t at = 0; at < taken.size(); at += kKeys) {
          std::vector<SettleRequest> settles;
          for (std::size_t i = at; i < at + kKeys; ++i)
            settles.push_back({{}, taken[i].run.id(), taken[i].fence, Complete{"r", {}}});
          if (thread == 1) std::ranges::reverse(settles);
          for (const auto& reply : Verbs(thread ? *one_ : *two_).settle_all(settles))
            if (std::get<Settled>(reply).changed) ++changed;
        }
      });
  }
  EXPECT_EQ(changed, kRounds * kKeys);
  EXPECT_FALSE(has_deadlocked()) << server.log();
  one_.reset();
  two_.reset();

  // What one looks like there.
  PgClient left(server.url()), right(server.url());
  for (PgClient* each : {&left, &right}) each->execute("SET lock_timeout = '5s'; BEGIN");
  left.execute("SELECT pg_advisory_xact_lock(1)");
  right.execute("SELECT pg_advisory_xact_lock(2)");
  left.send("SELECT pg_advisory_xact_lock(2)");
  right.send("SELECT pg_advisory_xact_lock(1)");
  int ended = 0;
  for (PgClient* each : {&left, &right}) try {
      each->finish();
    } catch (const std::runtime_error&) {
      ++ended;
    }
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(has_deadlocked()) << "the test cannot fail";
}

// pg_dump holds ACCESS SHARE on every table to its end, as does whoever reads the view for long. The server itself says
// who waited for a lock for 100 ms; the callers' clock says what they noticed.
TEST_F(PostgresLocks, ADumpAndReadersDuringPurgeBlockNothing) {
  constexpr int kOld = 4000;
  PgCluster server({"log_lock_waits=on", "deadlock_timeout=100ms", "log_min_messages=log"});
  one_ = open(server.url());
  two_ = open(server.url());
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < kOld; ++i) jobs.push_back(a_job("old" + std::to_string(i)));
  for (auto& job : jobs) job.window = 0ms;
  one().enqueue_all(jobs);
  while (true) {
    const auto taken = one().take({.functions = {"f"}, .limit = 500, .session = id_of(5)});
    if (taken.empty()) break;
    std::vector<SettleRequest> settles;
    for (const Taken& run : taken) settles.push_back({{}, run.run.id(), run.fence, Complete{"r", {}}});
    one().settle_all(settles);
  }
  const Duration unhindered = usual();
  PgClient reader(server.url());
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  PgClient slow_reader(server.url());
  slow_reader.send("SELECT count(*) FROM (SELECT pg_sleep(0.001) IS NULL FROM latchkey.job_runs OFFSET 0) r");
  std::atomic<bool> purged{false}, dumped{false}, read{false};
  std::atomic<std::uint32_t> gone{0};
  std::jthread purger([&] {
    for (bool more = true; more;) {
      const Swept swept = two().purge({.done = 0ms, .failed = 0ms}, 100);
      gone += swept.changed;
      more = swept.more;
    }
    purged = true;
  });
  const Folder folder;
  std::jthread dumper([&] {
    for (int i = 0; i < 3; ++i)
      run_pg_program({pg_program("pg_dump"), "-d", server.url(), "--schema=latchkey", "-f", "/dev/null"},
                     folder.file("dump.log"));
    dumped = true;
  });
  const Bystander bystander(server.url(), clock_);
  std::string seen;
  std::jthread reading([&] {
    seen = slow_reader.finish().front();
    read = true;
  });
  const auto calls = measure("during", [&] { return purged && dumped && read; });
  expect_no_delay(calls, unhindered + bystander.longest());
  purger.join();
  dumper.join();
  reading.join();
  EXPECT_GE(std::stoi(seen), kOld);
  EXPECT_GE(gone, static_cast<std::uint32_t>(kOld)) << "a reader does not keep them either";
  EXPECT_NE(reader.ask_one("SELECT count(*) FROM latchkey.runs"), "0") << "its snapshot stands";
  EXPECT_EQ(server.log().find("still waiting for"), std::string::npos) << server.log();
  // The lanes give up sooner than that.
  EXPECT_EQ(server.log().find("lock timeout"), std::string::npos) << server.log();

  // What such a wait looks like there.
  PgClient other(server.url());
  other.send("BEGIN; LOCK TABLE latchkey.runs IN ACCESS EXCLUSIVE MODE");
  PgClient(server.url())
      .wait_until(
          "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '0.3 s'");
  EXPECT_NE(server.log().find("still waiting for"), std::string::npos) << "the test cannot fail";
  reader.execute("ROLLBACK");
  other.finish();
  one_.reset();
  two_.reset();
}

}  // namespace
}  // namespace latchkey
