// Others in the same database: users' open transactions, readers and dumps. What they hold delays what needs it, and
// nobody else. The server itself says who waited for whom.
#include <future>
#include <latch>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_bystander.hpp"
#include "support/postgres/pg_crowd.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_program.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

// What nobody may be held up by.
constexpr Duration kDelay = 100ms;
// What the callers' clock may show beside that: a machine stalls now and then, whatever anybody holds.
constexpr Duration kStall = 1s;
// As the stores' sessions are called.
const std::string kStore = "store";

class PostgresLocks : public StoresTest {
 protected:
  using Run = latchkey::Run;
  // No session of a store has waited for anybody else for so long.
  void TearDown() override {
    EXPECT_EQ(log_.waits_for_others(kStore), std::vector<std::string>{});
    EXPECT_LE(log_.given_up(kStore), given_up_most_) << server_.log();
  }
  std::string url() const { return server_.url(); }
  std::unique_ptr<PostgresStore> open_store(PostgresSettings settings = {}) {
    return open(url() + "?application_name=" + kStore, std::move(settings));
  }
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
  // The same for jobs, from their making to their end.
  std::vector<Duration> measure_jobs(auto enough) {
    std::vector<Duration> taken;
    for (int i = 0; i < 10 || !enough(); ++i) {
      std::vector<Taken> job;
      taken.push_back(timed([&] { one().enqueue({.function = "job", .input = "i"}); }));
      // One whose commit took longer than 200 ms may be found a second later (ADR 0014).
      while (job.empty())
        taken.push_back(timed([&] { job = one().take({.functions = {"job"}, .limit = 1, .session = id_of(6)}); }));
      for (const Taken& it : job)
        taken.push_back(timed([&] { one().settle({{}, it.run.id(), it.fence, Complete{"r", {}}}); }));
    }
    return taken;
  }
  // And for a session of a user's own.
  std::vector<Duration> measure_sql(auto enough) {
    std::vector<Duration> taken;
    PgClient session = user();
    for (int i = 0; i < 10 || !enough(); ++i)
      taken.push_back(timed([&] {
        EXPECT_EQ(session.ask_one("SELECT status FROM latchkey.begin_run('sql', '" + std::to_string(i) + "')"), "won");
      }));
    return taken;
  }
  // Where nobody is in the way they take `usual`: a call in ten may meet what the machine does besides, none may wait.
  static void expect_no_delay(std::vector<Duration> taken, Duration usual) {
    std::ranges::sort(taken);
    EXPECT_LT(taken[taken.size() * 9 / 10], usual + kDelay);
    EXPECT_LT(taken.back(), usual + kStall);
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

  PgCluster server_{LockLog::settings(kDelay)};
  LockLog log_{server_};
  // Waits that are given up after 50 ms: each delays a batch by as much. Who wants what somebody holds has such waits,
  // at most one on each of the four lanes, and on the one of what is held, before all of them know.
  std::uint64_t given_up_most_ = 0;
  static constexpr std::uint64_t kOnEachLane = 5;
  std::unique_ptr<Store> one_ = open_store();
  std::unique_ptr<Store> two_ = open_store();
};

// What the others rely on.
TEST_F(PostgresLocks, AWaitOf150MillisecondsIsSeen) {
  PgClient holder = user();
  holder.execute("BEGIN; LOCK TABLE latchkey.tokens");
  auto reading = std::async(std::launch::async, [&] { return one_->list_tokens(); });
  PgClient(url()).wait_until(
      "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '0.15 s'");
  holder.execute("ROLLBACK");
  EXPECT_TRUE(reading.get());
  EXPECT_EQ(log_.waits_for_others(kStore).size(), 1u) << server_.log();
  EXPECT_EQ(log_.waited_for(holder), std::set{kStore});
  log_ = LockLog(server_);
}

// A key that somebody's open transaction has just begun: its row is new, nobody but that transaction can see it. Ten
// who want it too, some of them beside another key in one call, while 200 callers go on with keys of their own, until
// the store has lost patience with it.
class PostgresHeldKey : public PostgresLocks {
 protected:
  static constexpr int kWaiting = 10, kCallers = 200;
  static constexpr Duration kMostDelay = 300ms, kPatienceOfStore = 2s;
  struct Told {
    std::atomic<int> refused{0}, standing{0}, made{0};
    std::latch all{kWaiting};
  };

  void SetUp() override {
    given_up_most_ = kOnEachLane;
    one_ = open_store({.patience = kPatienceOfStore});
    Crowd(*one_, clock_, "first", kCallers).wait_for_answers(3 * kCallers);
    {
      Crowd crowd(*one_, clock_, "usual", kCallers);
      crowd.wait_for_answers(20 * kCallers);
      usual_ = crowd.finish().back();
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
    // Of thousands of calls a few may meet what the machine does besides; that none has waited as those do who want the
    // key, the server says.
    const auto taken = crowd_->finish();
    const Duration usual = usual_ + bystander_->longest();
    EXPECT_LT(taken[taken.size() * 99 / 100], usual + kMostDelay) << usual.count() << " ms as usual";
    EXPECT_LT(taken.back(), usual + kPatienceOfStore) << usual.count() << " ms as usual";
    PostgresLocks::TearDown();
  }
  // Until it is answered; the how manieth time.
  void ask(int number, int time = 1) {
    const auto refuse = [this, number, time](const Error& error) {
      EXPECT_EQ(error.code, Code::STORE_UNAVAILABLE) << to_string(error);
      ++told_.refused;
      ask(number, time + 1);
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
    one_->enqueue({same, a_job(beside)}, [this, refuse, time](Result<std::vector<EnqueueReply>> replies) {
      ASSERT_TRUE(replies) << to_string(replies.error());
      EXPECT_EQ(std::get<Enqueued>(replies->at(1)).duplicate, time > 1) << "it was made at the first time";
      if (const auto* error = std::get_if<Error>(&replies->at(0))) return refuse(*error);
      ++(std::get<Enqueued>(replies->at(0)).duplicate ? told_.standing : told_.made);
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
  one_ = open_store({.clock = &clock});
  two_ = open_store({.clock = &clock});
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
  given_up_most_ = kOnEachLane;
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
  given_up_most_ = std::numeric_limits<std::uint64_t>::max();  // they wait for each other
  PgClient(url()).execute("ALTER DATABASE postgres SET deadlock_timeout = '10ms'");
  one_ = open_store();
  two_ = open_store();
  const auto has_deadlocked = [&] { return server_.log().find("deadlock detected") != std::string::npos; };
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
  EXPECT_FALSE(has_deadlocked()) << server_.log();
  one_.reset();
  two_.reset();

  // What one looks like there.
  PgClient left(url()), right(url());
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

// Its counter is the next one behind a job's: whoever holds the job is not waited for, nor is the job held.
TEST_F(PostgresLocks, ARunIsSettledWithoutTheJobBeforeIt) {
  const RunId job = std::get<Enqueued>(one().enqueue({.function = "job", .input = "i"})).run.id();
  const Won won = std::get<Won>(one().claim(a_claim("behind it")));
  ASSERT_EQ(uuid_counter(won.run.id()), uuid_counter(job) + 1) << "the test cannot fail";
  PgClient holder(url());
  holder.execute("BEGIN; SELECT lo FROM latchkey.blocks FOR UPDATE");
  auto settled = std::async(std::launch::async, [&] {
    return std::get<Settled>(one().settle({{}, won.run.id(), won.fence, Complete{"r", {}}})).changed;
  });
  EXPECT_EQ(settled.wait_for(10s), std::future_status::ready);
  holder.execute("COMMIT");
  EXPECT_TRUE(settled.get());
}

// pg_dump holds ACCESS SHARE on every table to its end, as does whoever reads the view for long.
TEST_F(PostgresLocks, ADumpAndReadersDuringPurgeBlockNothing) {
  constexpr int kOld = 4000;
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
  const Instant done_by = one_->now();  // what comes later is not looked at by the purge: it would hold it for a moment
  const Duration unhindered = usual();
  PgClient reader(url());
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  PgClient slow_reader(url());
  slow_reader.send("SELECT count(*) FROM (SELECT pg_sleep(0.001) IS NULL FROM latchkey.job_runs OFFSET 0) r");
  std::atomic<bool> purged{false}, dumped{false}, read{false};
  std::atomic<std::uint32_t> gone{0}, gone_during_dump{0};
  std::jthread purger([&] {
    PgClient look(url());
    // Which one holds its locks, from its start to its end.
    const auto dump = [&] {
      return look.ask_one(
          "SELECT min(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = 'pg_dump' AND "
          "granted AND relation = 'latchkey.runs'::regclass");
    };
    while (dump().empty()) {
    }
    for (bool more = true; more;) {
      const std::string before = dump();
      const Duration age = two_->now() - done_by;
      const Swept swept = two().purge({.done = age, .failed = age}, 100);
      gone += swept.changed;
      if (!before.empty() && dump() == before) gone_during_dump += swept.changed;
      more = swept.more;
    }
    purged = true;
  });
  const Folder folder;
  std::jthread dumper([&] {
    for (int i = 0; i < 3 || !purged; ++i)
      run_pg_program({pg_program("pg_dump"), "-d", url(), "--schema=latchkey", "-f", "/dev/null"},
                     folder.file("dump.log"));
    dumped = true;
  });
  const Bystander bystander(url(), clock_);
  std::string seen;
  std::jthread reading([&] {
    seen = slow_reader.finish().front();
    read = true;
  });
  const auto is_over = [&] { return purged && dumped && read; };
  auto jobs_calls = std::async(std::launch::async, [&] { return measure_jobs(is_over); });
  auto sql_calls = std::async(std::launch::async, [&] { return measure_sql(is_over); });
  const auto calls = measure("during", is_over);
  for (const auto& measured : {calls, jobs_calls.get(), sql_calls.get()})
    expect_no_delay(measured, unhindered + bystander.longest());
  purger.join();
  dumper.join();
  reading.join();
  EXPECT_GE(std::stoi(seen), kOld);
  EXPECT_GE(gone, static_cast<std::uint32_t>(kOld)) << "a reader does not keep them either";
  EXPECT_GT(gone_during_dump, 0u) << "the test did not test";
  EXPECT_NE(reader.ask_one("SELECT count(*) FROM latchkey.runs"), "0") << "its snapshot stands";
}

}  // namespace
}  // namespace latchkey
