// Calls of many that name the same things in opposite orders, of two stores at once: whatever they lock, they lock in
// one order. The server looks for deadlocks well before the stores lose patience with a lock, and says of each that it
// finds. (Keys of new jobs, and runs that are settled: PostgresLocks.BatchesInOppositeOrderDoNotDeadlock.)
#include <algorithm>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresOrder : public StoresTest {
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
    EXPECT_TRUE(has_deadlocked()) << "the test cannot fail";
  }

  Verbs verbs(int thread) { return Verbs(*stores_[thread % 2]); }
  // Every other thread has them the other way round.
  template <class T>
  static std::vector<T> with_lock_retry(std::vector<T> all, int thread) {
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

TEST_F(PostgresOrder, DeadLettersOfSeveralFunctions) {
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
      for (const auto& reply : verbs(thread).settle_all(with_lock_retry(failures, thread)))
        EXPECT_TRUE(std::get<Settled>(reply).dead_letter);
      // So that new ones are opened, too.
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

// Each round one of them opens each, the others find it open; then two fail all of them, of which one is accepted.
TEST_F(PostgresOrder, KeysWhoseRunsOpenAgain) {
  constexpr int kRounds = 12;
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < kKeys; ++i) jobs.push_back(a_job(std::to_string(i)));
  for (int round = 1; round <= kRounds; ++round) {
    at_once(kThreads, [&](int thread) {
      for (const auto& reply : verbs(thread).enqueue_all(with_lock_retry(jobs, thread)))
        EXPECT_EQ(std::get<Enqueued>(reply).run.generation, static_cast<std::uint32_t>(round));
    });
    // Whoever found them open was answered before its transaction ended: until then they are passed over.
    std::vector<Taken> taken;
    ASSERT_TRUE(comes_true([&] {
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
      for (const auto& reply : verbs(thread).settle_all(with_lock_retry(failures, thread)))
        changed += std::get<Settled>(reply).changed;
    });
    EXPECT_EQ(changed, kKeys);
  }
  EXPECT_EQ(PgClient(server_.url()).ask_one("SELECT count(*) FROM latchkey.runs"), std::to_string(kKeys));
}

}  // namespace
}  // namespace latchkey
