// Concurrent calls of two stores that list the same rows in opposite orders: the stores lock rows in one order. The
// server's deadlock_timeout is shorter than the stores' lock timeout, and the server logs each deadlock.
// (PostgresLocks.BatchesInOppositeOrderDoNotDeadlock covers new keys and settlements.)
#include <algorithm>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class PostgresLockOrder : public StoresTest {
 protected:
  static constexpr int kThreads = 6, kFunctions = 6, kKeys = 30;

  void TearDown() override {
    for (auto& store : stores_) store.reset();
    EXPECT_FALSE(has_deadlocked()) << server_.log();
    expect_deadlocks_are_seen();
  }
  bool has_deadlocked() const { return server_.log().find("deadlock detected") != std::string::npos; }
  void expect_deadlocks_are_seen() {
    PgClient left(server_.url()), right(server_.url());
    left.execute("BEGIN; SELECT pg_advisory_xact_lock(1)");
    right.execute("BEGIN; SELECT pg_advisory_xact_lock(2)");
    left.send("SELECT pg_advisory_xact_lock(2)");
    right.send("SELECT pg_advisory_xact_lock(1)");
    for (PgClient* each : {&left, &right}) try {
        each->finish();
      } catch (const std::runtime_error&) {
      }
    EXPECT_TRUE(has_deadlocked()) << "the server does not log deadlocks";
  }

  Verbs verbs(int thread) { return Verbs(*stores_[thread % 2]); }
  // Half of the threads reverse the order.
  template <class T>
  static std::vector<T> in_order_of(std::vector<T> all, int thread) {
    if (thread / 2 % 2) std::ranges::reverse(all);
    return all;
  }
  static void at_once(int threads, auto act) {
    std::vector<std::jthread> all;
    for (int thread = 0; thread < threads; ++thread) all.emplace_back([&act, thread] { act(thread); });
  }

  PgCluster server_{{"deadlock_timeout=10ms"}};
  std::unique_ptr<PostgresStore> stores_[2] = {open(server_.url()), open(server_.url())};
};

TEST_F(PostgresLockOrder, DeadLettersDoNotDeadlock) {
  constexpr int kRounds = 20;
  at_once(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<SettleRequest> failures;
      for (int i = 0; i < kFunctions; ++i) {
        ClaimRequest request = a_claim(std::to_string(thread) + ":" + std::to_string(round));
        request.function = "f" + std::to_string(i);
        request.key_hash = hash_key(request.tenant, request.function, request.key);
        const Won won = std::get<Won>(verbs(thread).claim(request));
        failures.push_back({{}, won.run.id(), won.fence, permanent()});
      }
      for (const auto& reply : verbs(thread).settle_all(in_order_of(failures, thread)))
        EXPECT_TRUE(std::get<Settled>(reply).dead_letter);
      // Acknowledge the dead letters, so that later failures open new ones.
      if (thread > 0 || round % 5 > 0) continue;
      for (const DeadLetter& letter : stores_[0]->list_dead_letters({}).value().entries)
        EXPECT_TRUE(stores_[0]->acknowledge({}, letter.id, "ada").value());
    }
  });
  PgClient admin(server_.url());
  EXPECT_EQ(admin.ask_one("SELECT string_agg(DISTINCT n::text, ' ') FROM (SELECT sum(count) AS n FROM "
                          "latchkey.dead_letters GROUP BY function) f"),
            std::to_string(kThreads * kRounds));
  EXPECT_GT(std::stoi(admin.ask_one("SELECT count(*) FROM latchkey.dead_letters")), kFunctions);
}

// In each round one thread reopens each run, and the others get duplicates. Then several threads fail all runs, and
// each failure is accepted once.
TEST_F(PostgresLockOrder, ReopenedRunsDoNotDeadlock) {
  constexpr int kRounds = 12;
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < kKeys; ++i) jobs.push_back(a_job(std::to_string(i)));
  for (int round = 1; round <= kRounds; ++round) {
    at_once(kThreads, [&](int thread) {
      for (const auto& reply : verbs(thread).enqueue_all(in_order_of(jobs, thread)))
        EXPECT_EQ(std::get<Enqueued>(reply).run.generation, static_cast<std::uint32_t>(round));
    });
    // A duplicate gets its reply before its transaction ends, and a take skips the rows that are still locked.
    std::vector<Taken> taken;
    ASSERT_TRUE(wait_until([&] {
      for (Taken& each : verbs(0).take({.functions = {"f"}, .limit = 2 * kKeys, .session = id_of(5)}))
        taken.push_back(std::move(each));
      return taken.size() >= kKeys;
    })) << round
        << ": " << taken.size();
    ASSERT_EQ(taken.size(), static_cast<std::size_t>(kKeys)) << round;
    std::vector<SettleRequest> failures;
    for (const Taken& each : taken) failures.push_back({{}, each.run.id(), each.fence, permanent()});
    std::atomic<int> changed{0};
    at_once(4, [&](int thread) {
      for (const auto& reply : verbs(thread).settle_all(in_order_of(failures, thread)))
        changed += std::get<Settled>(reply).changed;
    });
    EXPECT_EQ(changed, kKeys);
  }
  EXPECT_EQ(PgClient(server_.url()).ask_one("SELECT count(*) FROM latchkey.runs"), std::to_string(kKeys));
}

}  // namespace
}  // namespace latchkey
