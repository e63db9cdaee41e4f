// The transactional promise: an effect and complete_run commit together, wherever the program is killed. Also the
// effects of an open transaction on others.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <latch>
#include <random>
#include <thread>

#include "sql/sql_runs.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

// The steps of a user's program; {run} and {fence} come from begin_run or from taking a job.
struct Program {
  std::string name;
  std::vector<std::string> steps;
  bool is_job() const { return steps.front().find("latchkey.blocks") != std::string::npos; }
};
const std::string kClaim = "SELECT run, fence, status FROM latchkey.begin_run('pay', 'order-7')";
// One of several jobs that a worker took together; no row if it was settled.
const std::string kTaken =
    "SELECT r.id, b.fence_from + r.seq, 'won' FROM latchkey.runs r JOIN latchkey.blocks b ON r.seq BETWEEN b.lo AND "
    "b.hi WHERE r.key = 'order-7' AND b.session IS NOT NULL";
const std::string kEffect = "INSERT INTO effects VALUES ('order-7')";
const std::string kComplete = "SELECT latchkey.complete_run('{run}', {fence}, 'paid')";
const std::vector<Program> kPrograms{
    {"OneTransaction", {"BEGIN", kClaim, kEffect, kComplete, "COMMIT"}},
    {"ClaimFirst", {kClaim, "BEGIN", kEffect, kComplete, "COMMIT"}},
    {"SettleBeforeEffect", {kClaim, "BEGIN", kComplete, kEffect, "COMMIT"}},
    {"TakenJob", {kTaken, "BEGIN", kEffect, kComplete, "COMMIT"}},
    {"TakenJobSettledBeforeEffect", {kTaken, "BEGIN", kComplete, kEffect, "COMMIT"}},
};

// When the program is killed: before a step, after sending it, or after its reply.
enum class KillPoint { before, sent, after };

class SqlKilled : public SqlTest, public ::testing::WithParamInterface<Program> {
 protected:
  SqlKilled() {
    role_ = make_role("payer");
    admin.run("GRANT latchkey_service TO " + role_ + "; CREATE TABLE effects (what text); GRANT ALL ON effects TO " +
              role_);
    admin.run("ALTER ROLE " + role_ + " SET app.current_tenant = 'acme'");
  }
  ~SqlKilled() override { admin.run("DROP TABLE effects"); }

  // Runs the steps. Stops if begin_run did not win, and returns its reply.
  static std::string follow(Sql& sql, const std::vector<std::string>& steps, std::size_t stop, KillPoint when) {
    std::string run, fence;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::string step = steps[i];
      if (const auto at = step.find("{run}"); at != step.npos) step.replace(at, 5, run);
      if (const auto at = step.find("{fence}"); at != step.npos) step.replace(at, 7, fence);
      if (i == stop && when == KillPoint::before) ::raise(SIGKILL);
      if (i == stop && when == KillPoint::sent) {
        sql.send(step);
        ::raise(SIGKILL);
      }
      const Rows said = sql.rows(step);
      if (i == stop) ::raise(SIGKILL);
      if (step != kClaim && step != kTaken) continue;
      if (said.empty()) return "settled";
      if (said[0][2] != "won") {
        sql.run("ROLLBACK");
        return *said[0][2];
      }
      run = *said[0][0], fence = *said[0][1];
    }
    return "done";
  }

  void run_and_kill(std::size_t stop, KillPoint when) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        Sql sql(url_as(role_));
        follow(sql, GetParam().steps, stop, when);
      } catch (...) {
      }
      ::_exit(3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    // A program that found the work done before that step exits by itself.
    ASSERT_TRUE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || killed_twice_);
  }

  static constexpr std::int64_t kFirst = 1, kLast = 5;
  // Five jobs in one block, as a server takes them.
  void take_jobs() {
    const Instant now = database_now(admin);
    for (std::int64_t seq = kFirst; seq <= kLast; ++seq) {
      RunHead head = a_head();
      head.id = make_uuid_v7(now, static_cast<std::uint64_t>(seq), 5);
      head.tenant = "acme";
      head.function = "pay";
      head.key = "order-" + std::to_string(4 + seq);
      head.key_hash = hash_key("acme", "pay", head.key);
      head.fingerprint.reset();
      store_run(admin, a_job_run(Queued{now}, head));
    }
    admin.run("DELETE FROM latchkey.states");
    admin.rows(
        "INSERT INTO latchkey.blocks VALUES ($1, $2, 'acme', 'pay', 0, $3, 9000, $3, $3::bigint + 600000, 600000, "
        "gen_random_uuid())",
        {std::to_string(kFirst), std::to_string(kLast), std::to_string(to_ms(now))});
  }
  void expect_others_untouched() {
    EXPECT_EQ(admin.rows("SELECT lo, hi, fence_from >= 9000 FROM latchkey.blocks ORDER BY lo"),
              (Rows{{"1", "2", "t"}, {"4", "5", "t"}}));
  }

  // The lease of the killed program expires; another worker gets the next fence of the jobs.
  void end_lease() {
    admin.run("UPDATE latchkey.blocks SET fence_from = fence_from + 1000");
    admin.run("UPDATE latchkey.states SET lease_until = at, deadline = at + 86400000 WHERE status = 1");
  }
  // Until the killed program's backend has exited, and with it the statement that it had sent.
  void wait_until_gone() {
    const std::string count = "SELECT count(*) FROM pg_stat_activity WHERE usename = '" + role_ + "'";
    for (int tries = 0; admin.one(count) != "0"; ++tries) {
      ASSERT_LT(tries, 100'000);
      std::this_thread::yield();
    }
  }

  std::string role_;
  bool killed_twice_ = false;
};

// covers: E8
TEST_P(SqlKilled, HasItsEffectExactlyOnce) {
  const auto& steps = GetParam().steps;
  for (const int times : {1, 2})
    for (std::size_t stop = 0; stop < steps.size(); ++stop)
      for (const KillPoint when : {KillPoint::before, KillPoint::sent, KillPoint::after}) {
        SCOPED_TRACE(std::to_string(times) + " times at step " + std::to_string(stop) + ", when " +
                     std::to_string(static_cast<int>(when)));
        admin.run(
            "TRUNCATE effects, latchkey.runs, latchkey.states, latchkey.settlements, latchkey.keys, latchkey.blocks");
        if (GetParam().is_job()) take_jobs();
        for (int i = 0; i < times; ++i) {
          killed_twice_ = i > 0;
          run_and_kill(stop, when);
          wait_until_gone();
          end_lease();
        }
        Sql other(url_as(role_));
        const std::string said = follow(other, steps, steps.size(), KillPoint::after);
        EXPECT_TRUE(said == "done" || said == "replayed" || said == "settled") << said;
        if (GetParam().is_job()) expect_others_untouched();
        EXPECT_EQ(admin.one("SELECT count(*) FROM effects"), "1");
        EXPECT_EQ(Sql(url_as(role_)).row("SELECT status, result_text FROM latchkey.begin_run('pay', 'order-7')"),
                  (std::vector<Value>{"replayed", "paid"}));
        if (HasFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, SqlKilled, ::testing::ValuesIn(kPrograms),
                         [](const auto& program) { return program.param.name; });

class SqlTransactions : public SqlTest {
 protected:
  Sql first = service("default");
  Sql second = service("default");
};

TEST_F(SqlTransactions, AStaleOwnersEffectIsUndone) {
  admin.run("CREATE TABLE effects (what text); GRANT ALL ON effects TO PUBLIC");
  const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k', lease => '1 s')");
  admin.run("UPDATE latchkey.states SET lease_until = at");
  const auto again = second.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  EXPECT_EQ(again[0], won[0]);
  first.run("BEGIN; INSERT INTO effects VALUES ('stale')");
  EXPECT_EQ(refusal(first, "SELECT latchkey.complete_run('" + *won[0] + "', " + *won[1] + ")").detail, "LEASE_LOST");
  first.run("COMMIT");  // of a transaction that failed: a rollback
  second.run("BEGIN; INSERT INTO effects VALUES ('fresh'); SELECT latchkey.complete_run('" + *again[0] + "', " +
             *again[1] + "); COMMIT");
  EXPECT_EQ(admin.rows("SELECT what FROM effects"), (Rows{{"fresh"}}));
  admin.run("DROP TABLE effects");
}

TEST_F(SqlTransactions, CallForALockedKeyWaitsForItsCommit) {
  first.run("BEGIN");
  const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  second.send("SELECT status, run, result_text FROM latchkey.begin_run('f', 'k')");
  wait_until_blocked(second.pid());
  first.run("SELECT latchkey.complete_run('" + *won[0] + "', " + *won[1] + ", 'r'); COMMIT");
  EXPECT_EQ(second.fetch(), (Rows{{"replayed", won[0], "r"}}));

  first.run("BEGIN; SELECT latchkey.begin_run('f', 'undone')");
  second.send("SELECT status FROM latchkey.begin_run('f', 'undone')");
  wait_until_blocked(second.pid());
  first.run("ROLLBACK");
  EXPECT_EQ(second.fetch(), (Rows{{"won"}}));
}

// covers: C1
TEST_F(SqlTransactions, FreedKeyHasOneWinner) {
  const std::string ask = "SELECT run, fence, status FROM latchkey.begin_run('f', 'k', guard => 'while-running')";
  const auto old = first.row(ask);
  first.run("SELECT latchkey.complete_run('" + *old[0] + "', " + *old[1] + ")");
  first.run("BEGIN");
  EXPECT_EQ(first.row(ask)[2], "won");
  second.send(ask);
  wait_until_blocked(second.pid());
  first.run("COMMIT");
  EXPECT_EQ(second.fetch()[0][2], "busy");
}

TEST_F(SqlTransactions, SettlementExcludesANewOwner) {
  const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  admin.run("UPDATE latchkey.states SET lease_until = at");
  first.run("BEGIN; SELECT latchkey.complete_run('" + *won[0] + "', " + *won[1] + ", 'in time')");
  second.send("SELECT status, result_text FROM latchkey.begin_run('f', 'k')");
  wait_until_blocked(second.pid());
  first.run("COMMIT");
  EXPECT_EQ(second.fetch(), (Rows{{"replayed", "in time"}}));

  const auto other = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k2')");
  admin.run("UPDATE latchkey.states SET lease_until = at");
  second.run("BEGIN; SELECT latchkey.begin_run('f', 'k2')");
  first.send("SELECT latchkey.complete_run('" + *other[0] + "', " + *other[1] + ", 'too late')");
  wait_until_blocked(first.pid());
  second.run("COMMIT");
  try {
    first.fetch();
    ADD_FAILURE() << "two owners";
  } catch (const SqlError& error) {
    EXPECT_EQ(error.detail, "LEASE_LOST");
  }
}

TEST_F(SqlTransactions, ReplayDoesNotWaitForLocks) {
  const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  first.run("SELECT latchkey.complete_run('" + *won[0] + "', " + *won[1] + ", 'r')");
  Sql locker = connect();
  locker.run("BEGIN; SELECT 1 FROM latchkey.keys FOR UPDATE");
  second.run("BEGIN; SET lock_timeout = '1 s'");
  EXPECT_EQ(second.one("SELECT status FROM latchkey.begin_run('f', 'k')"), "replayed");
  EXPECT_EQ(second.one("SELECT status FROM latchkey.begin_run('f', 'other')"), "won");
  locker.run(
      "ROLLBACK; BEGIN; SET LOCAL lock_timeout = '1 s'; SELECT 1 FROM latchkey.states WHERE status = 3 FOR UPDATE");
}

TEST_F(SqlTransactions, RepeatableReadFailsAfterAChange) {
  for (const char* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    const std::string key = std::string("'") + level + "'";
    second.run("BEGIN ISOLATION LEVEL " + std::string(level) + "; SELECT 1 FROM latchkey.job_runs LIMIT 1");
    first.run("SELECT latchkey.begin_run('f', " + key + ")");
    EXPECT_EQ(refusal(second, "SELECT latchkey.begin_run('f', " + key + ")").state, "40001");
    second.run("ROLLBACK");
    EXPECT_EQ(second.one("SELECT code FROM latchkey.begin_run('f', " + key + ")"), "ALREADY_RUNNING");
  }
}

TEST_F(SqlTransactions, OpenTransactionDelaysItsOwnKeyOnly) {
  // The first run of a tenant and of a function, so that their rows are inserted here.
  first.run("BEGIN; SELECT latchkey.begin_run('f', 'k'); SELECT latchkey.enqueue('g', 'j')");
  second.run("SET lock_timeout = '2 s'");
  EXPECT_EQ(second.one("SELECT status FROM latchkey.begin_run('f', 'k2')"), "won");
  EXPECT_EQ(second.one("SELECT status FROM latchkey.begin_run('g', 'k')"), "won");
  EXPECT_EQ(second.one("SELECT status FROM latchkey.enqueue('g', 'j2')"), "enqueued");
  EXPECT_EQ(second.one("SELECT status FROM latchkey.enqueue('g')"), "enqueued");
  EXPECT_EQ(service("other").one("SELECT status FROM latchkey.begin_run('f', 'k')"), "won");
  second.run("SET lock_timeout = '50 ms'");
  EXPECT_EQ(refusal(second, "SELECT latchkey.begin_run('f', 'k')").state, "55P03");
  // A server's batch does not wait for it either, and finds the job after its commit.
  Sql server = connect();
  server.run(
      "SET lock_timeout = '2 s'; SET ROLE latchkey_engine; UPDATE latchkey.states SET flags = flags WHERE function = "
      "'g'");
  EXPECT_EQ(server.one("SELECT count(*) FROM latchkey.states WHERE function = 'g' AND status = 0"), "2");
  first.run("COMMIT");
  EXPECT_EQ(server.one("SELECT count(*) FROM latchkey.states WHERE function = 'g' AND status = 0"), "3");
}

// covers: C1, C9
TEST_F(SqlTransactions, TenCallersAtOnceHaveOneWinner) {
  constexpr int kThreads = 10, kRounds = 15;
  std::vector<Sql> sessions;
  for (int i = 0; i < kThreads; ++i) sessions.push_back(service("default"));
  for (int round = 0; round < kRounds; ++round) {
    const std::string key = "'r" + std::to_string(round) + "'";
    std::atomic<int> won{0}, busy{0};
    std::latch start(kThreads);
    {
      std::vector<std::jthread> threads;
      for (Sql& session : sessions)
        threads.emplace_back([&] {
          start.arrive_and_wait();
          const Value status =
              session.one("SELECT status FROM latchkey.begin_run('sync', " + key + ", guard => 'while-running')");
          if (status == "won") ++won;
          if (status == "busy") ++busy;
        });
    }
    EXPECT_EQ(won, 1);
    EXPECT_EQ(busy, kThreads - 1);
    EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.runs WHERE convert_from(key, 'UTF8') = " + key), "1");
  }
}

// Many programs on few keys, each with its effect in the settling transaction, while leases expire.
TEST_F(SqlTransactions, ConcurrentProgramsHaveOneEffect) {
  constexpr int kThreads = 6, kRounds = 60, kKeys = 12;
  admin.run("CREATE TABLE effects (run uuid); GRANT ALL ON effects TO PUBLIC");
  std::vector<Sql> sessions;
  for (int i = 0; i < kThreads; ++i) sessions.push_back(service("default"));
  std::atomic<int> working{kThreads}, unexpected{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < sessions.size(); ++i)
      threads.emplace_back([&, i] {
        std::mt19937 draw(static_cast<unsigned>(i));
        Sql& sql = sessions[i];
        for (int round = 0; round < kRounds; ++round) {
          const std::string key = "'k" + std::to_string(draw() % kKeys) + "'";
          const std::string policy = "retry_policy => '{\"retries\":2,\"first_ms\":0}'";
          const bool claims_first = draw() % 2 == 0;
          const unsigned end = draw() % 4;
          try {
            if (!claims_first) sql.run("BEGIN");
            const auto said =
                sql.row("SELECT run, fence, status FROM latchkey.begin_run('f', " + key + ", " + policy + ")");
            if (claims_first) sql.run("BEGIN");
            if (said[2] == "won") {
              const std::string by = "('" + *said[0] + "', " + *said[1];
              if (end == 0) {
                sql.run("SELECT latchkey.fail_run" + by + ", 'no')");
              } else {
                sql.run("INSERT INTO effects VALUES ('" + *said[0] + "')");
                sql.run("SELECT latchkey.complete_run" + by + ")");
              }
            }
            sql.run(end == 1 ? "ROLLBACK" : "COMMIT");
          } catch (const SqlError& error) {
            if (error.detail != "LEASE_LOST") ++unexpected, ADD_FAILURE() << error.state << error.what();
            sql.run("ROLLBACK");
          }
        }
        --working;
      });
    while (working > 0)
      admin.run("UPDATE latchkey.states SET lease_until = at WHERE status = 1 AND seq % 2000 = 1 AND lease_until > at");
  }
  EXPECT_EQ(unexpected, 0);
  EXPECT_EQ(admin.rows("SELECT run FROM effects GROUP BY run HAVING count(*) > 1"), Rows{})
      << "an effect happened twice";
  EXPECT_EQ(admin.rows("SELECT r.id FROM latchkey.runs r JOIN latchkey.states s USING (seq) FULL JOIN effects e ON "
                       "e.run = r.id WHERE (s.status = 3) <> (e.run IS NOT NULL)"),
            Rows{});
  EXPECT_EQ(admin.rows("SELECT hash FROM latchkey.runs GROUP BY hash HAVING count(*) > 1"), Rows{})
      << "under once a key has one run";
  EXPECT_GT(std::stoi(*admin.one("SELECT count(*) FROM effects")), kKeys / 2);
  admin.run("DROP TABLE effects");
}

// covers: C8
TEST_F(SqlTransactions, FailuresAtOnceAreOneEntry) {
  constexpr int kThreads = 8;
  std::vector<Sql> sessions;
  std::vector<std::string> settle;
  for (int i = 0; i < kThreads; ++i) {
    sessions.push_back(service("default"));
    const auto won = sessions.back().row("SELECT run, fence FROM latchkey.begin_run('sync', 'k" + std::to_string(i) +
                                         "', retries => 0)");
    settle.push_back("SELECT latchkey.fail_run('" + *won[0] + "', " + *won[1] + ", 'no')");
  }
  std::latch start(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < sessions.size(); ++i)
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        sessions[i].run(settle[i]);
      });
  }
  EXPECT_EQ(admin.rows("SELECT count FROM latchkey.dead_letters"), (Rows{{std::to_string(kThreads)}}));
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.dead_letter_members"), std::to_string(kThreads));
}

TEST_F(SqlTransactions, WorkIsNotifiedOncePerCommit) {
  Sql listener = connect();
  listener.run("LISTEN latchkey_work");
  first.run(
      "BEGIN; SELECT latchkey.enqueue('g'); SELECT latchkey.enqueue('h'); SELECT latchkey.begin_run('f', 'k'); COMMIT");
  listener.run("SELECT 1");
  EXPECT_EQ(listener.notifications(), std::vector<std::string>{"latchkey_work "});
}

}  // namespace
}  // namespace latchkey
