// Other sessions in the same database: users' open transactions, readers and dumps. Their locks delay only calls that
// need those rows. The server's log shows which session waited for which.
#include <future>
#include <latch>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_closed_loop_load.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_other_session.hpp"
#include "support/postgres/pg_program.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

// The longest lock wait that is allowed.
constexpr Duration kDelay = 100ms;
// The longest stall of the machine, which adds to the measured times.
constexpr Duration kStall = 1s;
// The application name of the stores' sessions.
const std::string kStore = "store";

class PostgresLocks : public StoresTest {
 protected:
  using Run = latchkey::Run;
  // No session of a store has waited for another session for kDelay.
  void TearDown() override {
    EXPECT_EQ(log_.waits_for_others(kStore), std::vector<std::string>{});
    EXPECT_LE(log_.count_lock_timeouts(kStore), lock_timeouts_max_) << server_.log();
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
  // Measures claims and settlements of other keys, one after another, until `enough()`.
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
  // Measures jobs: enqueue, take and settle.
  std::vector<Duration> measure_jobs(auto enough) {
    std::vector<Duration> taken;
    for (int i = 0; i < 10 || !enough(); ++i) {
      std::vector<Taken> job;
      taken.push_back(timed([&] { one().enqueue({.function = "job", .input = "i"}); }));
      // A job whose commit took longer than 200 ms may be found a second later (ADR 0014).
      while (job.empty())
        taken.push_back(timed([&] { job = one().take({.functions = {"job"}, .limit = 1, .session = id_of(6)}); }));
      for (const Taken& it : job)
        taken.push_back(timed([&] { one().settle({{}, it.run.id(), it.fence, Complete{"r", {}}}); }));
    }
    return taken;
  }
  // Measures SQL functions in a user's session.
  std::vector<Duration> measure_sql(auto enough) {
    std::vector<Duration> taken;
    PgClient session = user();
    for (int i = 0; i < 10 || !enough(); ++i)
      taken.push_back(timed([&] {
        EXPECT_EQ(session.ask_one("SELECT status FROM latchkey.begin_run('sql', '" + std::to_string(i) + "')"), "won");
      }));
    return taken;
  }
  // `usual` is the time without other sessions. One call in ten may be slow because of the machine, but no call may
  // wait for a lock.
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
  // The longest call without other sessions. Also opens the connections.
  Duration usual() {
    measure("first", [] { return true; });
    int asked = 0;
    return std::ranges::max(measure("usual", [&] { return ++asked >= 60; }));
  }

  PgCluster server_{LockLog::settings(kDelay)};
  LockLog log_{server_};
  // The allowed lock timeouts. Each one delays a batch by 50 ms. Before the store has detected a contended row, each of
  // the four writers and the contended writer may time out once.
  std::uint64_t lock_timeouts_max_ = 0;
  static constexpr std::uint64_t kOnePerWriter = 5;
  std::unique_ptr<Store> one_ = open_store();
  std::unique_ptr<Store> two_ = open_store();
};

// The other tests rely on this entry in the log.
TEST_F(PostgresLocks, LogShowsLockWaitOf150Ms) {
  PgClient blocker = user();
  blocker.execute("BEGIN; LOCK TABLE latchkey.tokens");
  auto reading = std::async(std::launch::async, [&] { return one_->list_tokens(); });
  PgClient(url()).wait_until(
      "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '0.15 s'");
  blocker.execute("ROLLBACK");
  EXPECT_TRUE(reading.get());
  EXPECT_EQ(log_.waits_for_others(kStore).size(), 1u) << server_.log();
  EXPECT_EQ(log_.waiters_of(blocker), std::set{kStore});
  log_ = LockLog(server_);
}

// A user's open transaction has inserted a key, whose row only that transaction sees. Ten callers request the same key,
// some together with another key in one call, until the store rejects them. Meanwhile 200 callers use their own keys.
class ContendedKey : public PostgresLocks {
 protected:
  static constexpr int kWaiting = 10, kCallers = 200;
  static constexpr Duration kDelayMax = 300ms, kStorePatience = 2s;
  struct Replies {
    std::atomic<int> rejected{0}, existing{0}, created{0};
    std::latch all{kWaiting};
  };

  void SetUp() override {
    lock_timeouts_max_ = kOnePerWriter;
    one_ = open_store({.patience = kStorePatience});
    ClosedLoopLoad(*one_, clock_, "first", kCallers).wait_for_replies(3 * kCallers);
    {
      ClosedLoopLoad load(*one_, clock_, "usual", kCallers);
      load.wait_for_replies(20 * kCallers);
      usual_ = load.finish().back();
    }
    const std::string begun = blocker_.ask_one("BEGIN; SELECT run || ' ' || fence FROM latchkey.begin_run('f', 'k')");
    run_ = begun.substr(0, begun.find(' '));
    fence_ = begun.substr(begun.find(' ') + 1);
    other_session_.emplace(url(), clock_);
    load_.emplace(*one_, clock_, "others", kCallers);
    load_->wait_for_replies(kCallers);
    for (int i = 0; i < kWaiting; ++i) request_key(i);
    while (replies_.rejected < kWaiting) load_->wait_for_replies(kCallers);
    EXPECT_EQ(replies_.existing + replies_.created, 0) << "a reply came before the transaction ended";
  }
  void TearDown() override {
    replies_.all.wait();
    const std::uint64_t before = load_->replies();
    load_->wait_for_replies(kCallers);
    EXPECT_GT(load_->replies(), before);
    // A few of thousands of calls may be slow because of the machine. The server's log shows that none waited for the
    // key's lock.
    const auto taken = load_->finish();
    const Duration usual = usual_ + other_session_->longest();
    EXPECT_LT(taken[taken.size() * 99 / 100], usual + kDelayMax) << "usual: " << usual.count() << " ms";
    EXPECT_LT(taken.back(), usual + kStorePatience) << "usual: " << usual.count() << " ms";
    PostgresLocks::TearDown();
  }
  // Requests the key, and again after each rejection. `attempt` counts from 1.
  void request_key(int number, int attempt = 1) {
    const auto retry = [this, number, attempt](const Error& error) {
      EXPECT_EQ(error.code, Code::STORE_UNAVAILABLE) << to_string(error);
      ++replies_.rejected;
      request_key(number, attempt + 1);
    };
    if (number % 2 == 0) {
      ClaimRequest same = a_claim("k");
      same.fingerprint.reset();
      return one_->claim(same, [this, retry](Result<ClaimReply> reply) {
        if (!reply) return retry(reply.error());
        ++(std::holds_alternative<Won>(*reply) ? replies_.created : replies_.existing);
        replies_.all.count_down();
      });
    }
    EnqueueRequest same = a_job("k");
    same.fingerprint.reset();
    const std::string beside = "beside" + std::to_string(number);
    one_->enqueue({same, a_job(beside)}, [this, retry, attempt](Result<std::vector<EnqueueReply>> replies) {
      ASSERT_TRUE(replies) << to_string(replies.error());
      EXPECT_EQ(std::get<Enqueued>(replies->at(1)).duplicate, attempt > 1) << "the first attempt created it";
      if (const auto* error = std::get_if<Error>(&replies->at(0))) return retry(*error);
      ++(std::get<Enqueued>(replies->at(0)).duplicate ? replies_.existing : replies_.created);
      replies_.all.count_down();
    });
  }

  Duration usual_{};
  PgClient blocker_ = user();
  std::string run_, fence_;
  Replies replies_;
  std::optional<OtherSession> other_session_;
  std::optional<ClosedLoopLoad> load_;
};

TEST_F(ContendedKey, DelaysOnlyItsCallersUntilCommit) {
  blocker_.execute("COMMIT");
  replies_.all.wait();
  EXPECT_EQ(replies_.existing, kWaiting) << "the first transaction created the run";
  blocker_.execute("SELECT latchkey.complete_run('" + run_ + "', " + fence_ + ", 'done')");
  ClaimRequest same = a_claim("k");
  same.fingerprint.reset();
  EXPECT_EQ(std::get<Replay>(one().claim(same)).run.as<Completed>()->result, "done");
}

TEST_F(ContendedKey, DelaysOnlyItsCallersUntilRollback) {
  blocker_.execute("ROLLBACK");
  replies_.all.wait();
  EXPECT_EQ(replies_.created, 1) << "one of the waiting callers";
  EXPECT_EQ(replies_.existing, kWaiting - 1);
}

// A job's id is drawn when it is enqueued, but the job is visible after the commit. A store that reads only from the
// last seen id would lose it. On the stores' clock the job commits two minutes later.
TEST_F(PostgresLocks, JobCommittedLateIsTaken) {
  ManualClock clock(clock_.now());
  one_ = open_store({.clock = &clock});
  two_ = open_store({.clock = &clock});
  const Duration unhindered = usual();
  PgClient late = user();
  late.execute(
      "BEGIN; SELECT latchkey.enqueue('f', input => 'late'); SELECT latchkey.enqueue('f', 'k', input => 'late')");
  std::multiset<std::string> taken;
  std::vector<Duration> calls;
  const OtherSession other_session(url(), clock_);
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
  expect_no_delay(calls, unhindered + other_session.longest());
  EXPECT_EQ(taken.size(), 60u) << "all other jobs";
  EXPECT_EQ(taken.count("late"), 0u);
  late.execute("COMMIT");
  for (int i = 61; i <= 70; ++i) work(i);
  EXPECT_EQ(taken.count("late"), 2u);
  EXPECT_EQ(taken.size(), 72u) << "70 other jobs and the two late ones";
  one_.reset();  // before the clock
  two_.reset();
}

// Many waiting claims must not occupy all writers.
TEST_F(PostgresLocks, ContendedKeysDoNotDelayOthers) {
  lock_timeouts_max_ = kOnePerWriter;
  const Duration unhindered = usual();
  constexpr int kContended = 20;
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.begin_run('f', 'contended' || i) FROM generate_series(0, 19) i");
  struct Answers {
    std::latch all{kContended};
    std::atomic<int> busy{0};
  };
  auto answers = std::make_shared<Answers>();
  const auto claim_of = [](int i) {
    ClaimRequest request = a_claim("contended" + std::to_string(i));
    request.fingerprint.reset();
    return request;
  };
  for (int i = 0; i < kContended; ++i)
    one_->claim(claim_of(i), [answers](Result<ClaimReply> reply) {
      if (reply && std::holds_alternative<Busy>(*reply)) ++answers->busy;
      answers->all.count_down();
    });
  const OtherSession other_session(url(), clock_);
  int asked = 0;
  const auto calls = measure("free", [&] { return ++asked >= 60; });
  expect_no_delay(calls, unhindered + other_session.longest());
  EXPECT_EQ(answers->busy, 0) << "a contended claim got its reply early";
  blocker.execute("COMMIT");
  answers->all.wait();
  EXPECT_EQ(answers->busy, kContended);
}

// Six callers of two stores use the same keys in different orders. The server's deadlock_timeout is shorter than the
// stores' lock timeout, and the server logs each deadlock.
TEST_F(PostgresLocks, BatchesInOppositeOrderDoNotDeadlock) {
  constexpr int kThreads = 6, kRounds = 25, kKeys = 40;
  lock_timeouts_max_ = std::numeric_limits<std::uint64_t>::max();  // the callers wait for each other
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

  // Then two callers settle the same runs in opposite orders. One of the two settlements is accepted.
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

  // Cause a deadlock, to show that the log would contain one.
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
  EXPECT_TRUE(has_deadlocked()) << "the server does not log deadlocks";
}

// The run's seq follows a job's in a block. To settle the run, the store neither waits for the block nor locks it.
TEST_F(PostgresLocks, SettleDoesNotLockPrecedingJob) {
  const RunId job = std::get<Enqueued>(one().enqueue({.function = "job", .input = "i"})).run.id();
  const Won won = std::get<Won>(one().claim(a_claim("behind it")));
  ASSERT_EQ(uuid_counter(won.run.id()), uuid_counter(job) + 1) << "the run does not follow the job";
  PgClient blocker(url());
  blocker.execute("BEGIN; SELECT lo FROM latchkey.blocks FOR UPDATE");
  auto settled = std::async(std::launch::async, [&] {
    return std::get<Settled>(one().settle({{}, won.run.id(), won.fence, Complete{"r", {}}})).changed;
  });
  EXPECT_EQ(settled.wait_for(10s), std::future_status::ready);
  blocker.execute("COMMIT");
  EXPECT_TRUE(settled.get());
}

// pg_dump has an ACCESS SHARE lock on every table until its end, like a long read of the view.
TEST_F(PostgresLocks, DumpAndReadersDelayNoCall) {
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
  const Instant done_by = one_->now();  // the purge skips later runs, so that it does not lock them
  const Duration unhindered = usual();
  PgClient reader(url());
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  PgClient slow_reader(url());
  slow_reader.send("SELECT count(*) FROM (SELECT pg_sleep(0.001) IS NULL FROM latchkey.job_runs OFFSET 0) r");
  std::atomic<bool> purged{false}, dumped{false}, read{false};
  std::atomic<std::uint32_t> gone{0}, gone_during_dump{0};
  std::jthread purger([&] {
    PgClient look(url());
    // The backend of the pg_dump that has its locks now.
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
  const OtherSession other_session(url(), clock_);
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
    expect_no_delay(measured, unhindered + other_session.longest());
  purger.join();
  dumper.join();
  reading.join();
  EXPECT_GE(std::stoi(seen), kOld);
  EXPECT_GE(gone, static_cast<std::uint32_t>(kOld)) << "a reader blocked the purge";
  EXPECT_GT(gone_during_dump, 0u) << "no run was purged during a dump";
  EXPECT_NE(reader.ask_one("SELECT count(*) FROM latchkey.runs"), "0") << "the reader lost its snapshot";
}

}  // namespace
}  // namespace latchkey
