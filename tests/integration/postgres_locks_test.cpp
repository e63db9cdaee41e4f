// Others in the same database: users' open transactions, readers and dumps. What they hold delays what needs it, and
// nobody else.
#include <latch>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"
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

  // The same without anybody in the way, on a machine that may be busy.
  Duration usual() {
    int asked = 0;
    return longest("usual", [&] { return ++asked >= 60; });
  }

  std::unique_ptr<Store> one_ = open(url());
  std::unique_ptr<Store> two_ = open(url());
};

// As a user's begin_run('k') would until its transaction ends.
TEST_F(PostgresLocks, AnOpenTransactionThatHoldsAKeyDelaysOnlyThatKey) {
  const Duration unhindered = usual();
  const Won held = std::get<Won>(one().claim(a_claim("k")));
  PgClient user(url());
  user.execute("BEGIN; SELECT 1 FROM latchkey.keys WHERE seq = (SELECT seq FROM latchkey.runs WHERE id = '" +
               to_string(held.run.id()) + "') FOR UPDATE");

  std::promise<ClaimReply> waiting;
  one_->claim(a_claim("k"), [&](Result<ClaimReply> reply) { waiting.set_value(reply.value()); });
  auto answer = waiting.get_future();
  int asked = 0;
  EXPECT_LT(longest("free", [&] { return ++asked >= 60; }), unhindered + kDelay) << "keys that nobody holds";
  EXPECT_NE(answer.wait_for(0s), std::future_status::ready) << "the test did not test";
  user.execute("ROLLBACK");
  EXPECT_TRUE(std::holds_alternative<Busy>(answer.get()));
}

// Many that wait must not take all the lanes.
TEST_F(PostgresLocks, ManyThatWaitForHeldKeysDoNotDelayOthers) {
  const Duration unhindered = usual();
  constexpr int kHeld = 20;
  for (int i = 0; i < kHeld; ++i) one().claim(a_claim("held" + std::to_string(i)));
  PgClient user(url());
  user.execute("BEGIN; SELECT 1 FROM latchkey.keys FOR UPDATE");
  std::latch answered(kHeld);
  std::atomic<int> busy{0};
  for (int i = 0; i < kHeld; ++i)
    one_->claim(a_claim("held" + std::to_string(i)), [&](Result<ClaimReply> reply) {
      if (reply && std::holds_alternative<Busy>(*reply)) ++busy;
      answered.count_down();
    });
  int asked = 0;
  EXPECT_LT(longest("free", [&] { return ++asked >= 60; }), unhindered + kDelay);
  EXPECT_EQ(busy, 0) << "the test did not test";
  user.execute("COMMIT");
  answered.wait();
  EXPECT_EQ(busy, kHeld);
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

// pg_dump holds ACCESS SHARE on every table to its end.
TEST_F(PostgresLocks, ADumpAndAReaderDuringPurgeBlockNothing) {
  const Duration unhindered = usual();
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
  PgClient reader(url());
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.runs");
  const Folder folder;
  std::atomic<bool> purged{false};
  std::atomic<std::uint32_t> gone{0};
  std::jthread purger([&] {
    for (bool more = true; more;) {
      const Swept swept = two().purge({.done = 0ms, .failed = 0ms}, 100);
      gone += swept.changed;
      more = swept.more;
    }
    purged = true;
  });
  std::atomic<bool> dumped{false};
  std::jthread dumper([&] {
    run_pg_program({pg_program("pg_dump"), "-d", url(), "--schema=latchkey", "-f", "/dev/null"},
                   folder.file("dump.log"));
    dumped = true;
  });
  EXPECT_LT(longest("during", [&] { return purged && dumped; }), unhindered + kDelay);
  purger.join();
  EXPECT_GE(gone, 2000u) << "a reader does not keep them either";
  EXPECT_NE(reader.ask_one("SELECT count(*) FROM latchkey.runs"), "0") << "its snapshot stands";
}

}  // namespace
}  // namespace latchkey
