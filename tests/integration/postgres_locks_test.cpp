// Others in the same database: users' open transactions, readers and dumps. What they hold delays what needs it, and
// nobody else.
#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"
#include "support/pg_cluster.hpp"
#include "support/pg_program.hpp"

namespace latchkey {
namespace {

// What nobody may be held up by, beside what takes as long when nobody is in the way.
constexpr Duration kDelay = 100ms;

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
  // How long claims and jobs of others take, one after another, until `enough()`; the longest of all but the first few,
  // which open connections.
  Duration longest(const std::string& prefix, auto enough) {
    Duration worst{};
    for (int i = 0; i < 10 || !enough(); ++i) {
      std::optional<Won> won;
      const Duration claim = timed([&] { won = std::get<Won>(one().claim(a_claim(prefix + std::to_string(i)))); });
      const Duration settle = timed([&] { one().settle({{}, won->run.id(), won->fence, Complete{"r", {}}}); });
      if (i >= 5) worst = std::max({worst, claim, settle});
    }
    return worst;
  }

  // A user's own session, which may call the functions that the migrations make.
  PgClient user() {
    PgClient session(url());
    if (session.ask_one("SELECT to_regproc('latchkey.begin_run')").empty()) {
      std::set<std::filesystem::path> files;
      for (const auto& file : std::filesystem::directory_iterator(LATCHKEY_SOURCE_DIR "/migrations"))
        if (file.path().string().ends_with(".up.sql")) files.insert(file.path());
      files.erase(files.begin());  // the tables, which the store has made
      for (const auto& file : files) {
        std::ifstream in(file);
        session.execute(std::string(std::istreambuf_iterator<char>(in), {}));
      }
    }
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }
  // The same without anybody in the way, on a machine that may be busy.
  Duration usual() {
    int asked = 0;
    return longest("usual", [&] { return ++asked >= 60; });
  }

  std::unique_ptr<Store> one_ = open(url());
  std::unique_ptr<Store> two_ = open(url());
};

// The key is new: nobody but that transaction can see its row.
TEST_F(PostgresLocks, BeginRunInAnOpenTransactionDelaysOnlyItsKey) {
  const Duration unhindered = usual();
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  ClaimRequest same = a_claim("k");
  same.fingerprint.reset();
  auto waiting = std::make_shared<std::promise<Result<ClaimReply>>>();
  auto answer = waiting->get_future();
  one_->claim(same, [waiting](Result<ClaimReply> reply) { waiting->set_value(std::move(reply)); });
  int asked = 0;
  EXPECT_LT(longest("free", [&] { return ++asked >= 60; }), unhindered + kDelay);
  // Beside it in one call, too.
  const auto both = std::make_shared<std::promise<Result<std::vector<EnqueueReply>>>>();
  auto enqueued = both->get_future();
  one_->enqueue({a_job("k"), a_job("beside")}, [both](auto replies) { both->set_value(std::move(replies)); });
  asked = 0;
  EXPECT_LT(longest("after", [&] { return ++asked >= 60; }), unhindered + kDelay);
  EXPECT_NE(answer.wait_for(0s), std::future_status::ready) << "the test did not test";
  holder.execute("COMMIT");
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  const auto reply = answer.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(std::holds_alternative<Busy>(*reply)) << "the transaction that was first has it";
  ASSERT_EQ(enqueued.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(enqueued.get());
}

// Ids are drawn when it enqueues, seen when it commits: whoever reads on from the last id that it saw would lose it.
TEST_F(PostgresLocks, AJobThatCommitsLateIsNeitherLostNorInTheWay) {
  const Duration unhindered = usual();
  PgClient late = user();
  late.execute(
      "BEGIN; SELECT latchkey.enqueue('f', input => 'late'); SELECT latchkey.enqueue('f', 'k', input => 'late')");
  std::multiset<std::string> taken;
  Duration worst{};
  const auto work = [&](int number) {
    worst = std::max(worst, timed([&] { two().enqueue({.function = "f", .input = std::to_string(number)}); }));
    std::vector<Taken> some;
    worst = std::max(worst, timed([&] { some = one().take({.functions = {"f"}, .limit = 5, .session = id_of(5)}); }));
    for (const Taken& one_of : some) {
      taken.insert(one_of.run.head->input);
      worst = std::max(worst, timed([&] { one().settle({{}, one_of.run.id(), one_of.fence, Complete{"r", {}}}); }));
    }
  };
  work(0);
  worst = {};
  for (int i = 1; i <= 60; ++i) work(i);
  EXPECT_LT(worst, unhindered + kDelay);
  EXPECT_EQ(taken.size(), 61u) << "everything else";
  EXPECT_EQ(taken.count("late"), 0u);
  late.execute("COMMIT");
  for (int i = 61; i <= 70; ++i) work(i);
  EXPECT_EQ(taken.count("late"), 2u);
  EXPECT_EQ(taken.size(), 73u) << "71 of its own and the two";
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
  int asked = 0;
  EXPECT_LT(longest("free", [&] { return ++asked >= 60; }), unhindered + kDelay);
  EXPECT_EQ(answers->busy, 0) << "the test did not test";
  holder.execute("COMMIT");
  answers->all.wait();
  EXPECT_EQ(answers->busy, kHeld);
}

// Ten stores' worth of batches, each with the same keys in another order.
TEST_F(PostgresLocks, BatchesInOppositeOrderDoNotDeadlock) {
  constexpr int kThreads = 6, kRounds = 25, kKeys = 40;
  const auto deadlocks = [&] {
    return PgClient(url()).ask_one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
  };
  const std::string before = deadlocks();
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
  EXPECT_EQ(deadlocks(), before);
}

// pg_dump holds ACCESS SHARE on every table to its end. The server itself says who waited for a lock for 100 ms.
TEST_F(PostgresLocks, ADumpAndAReaderDuringPurgeBlockNothing) {
  PgCluster server({"log_lock_waits=on", "deadlock_timeout=100ms", "log_min_messages=log"});
  one_ = open(server.url());
  two_ = open(server.url());
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < 2000; ++i) jobs.push_back(a_job("old" + std::to_string(i)));
  for (auto& job : jobs) job.window = 0ms;
  one().enqueue_all(jobs);
  while (true) {
    const auto taken = one().take({.functions = {"f"}, .limit = 500, .session = id_of(5)});
    if (taken.empty()) break;
    std::vector<SettleRequest> settles;
    for (const Taken& run : taken) settles.push_back({{}, run.run.id(), run.fence, Complete{"r", {}}});
    one().settle_all(settles);
  }
  PgClient reader(server.url());
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.runs");
  std::atomic<bool> purged{false}, dumped{false};
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
    run_pg_program({pg_program("pg_dump"), "-d", server.url(), "--schema=latchkey", "-f", "/dev/null"},
                   folder.file("dump.log"));
    dumped = true;
  });
  longest("during", [&] { return purged && dumped; });
  purger.join();
  dumper.join();
  EXPECT_GE(gone, 2000u) << "a reader does not keep them either";
  EXPECT_NE(reader.ask_one("SELECT count(*) FROM latchkey.runs"), "0") << "its snapshot stands";
  EXPECT_EQ(server.log().find("still waiting for"), std::string::npos) << server.log();

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
