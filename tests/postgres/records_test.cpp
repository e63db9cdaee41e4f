// Dead letters and tokens on PostgreSQL, with locked rows and with concurrent changes in one batch.
#include <map>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class PostgresRecords : public PostgresStores {
 protected:
  Verbs verbs() { return Verbs(*store_); }
  Settled fail_one(const std::string& key) {
    const Won won = std::get<Won>(verbs().claim(a_claim(key)));
    return std::get<Settled>(verbs().settle({{}, won.run.id(), won.fence, permanent()}));
  }
  static TokenRecord token(std::string id) { return {.id = std::move(id), .name = "ci", .role = Role::admin}; }
  auto later(auto act) { return std::async(std::launch::async, act); }
  // Measures sequential claims of other keys, without the first few, which open connections. Sorted.
  std::vector<Duration> claim_some(const std::string& prefix) {
    std::vector<Duration> taken;
    for (int i = 0; i < 40; ++i) {
      const Duration start = clock_.elapsed();
      verbs().claim(a_claim(prefix + std::to_string(i)));
      if (i >= 5) taken.push_back(clock_.elapsed() - start);
    }
    std::ranges::sort(taken);
    return taken;
  }

  // The time limit is longer than the test has the lock, so no call is rejected.
  std::unique_ptr<Store> store_ = open(url(), {.writers = 1, .patience = 30s});
};

// The server's log shows that the store's only writer never waits for the lock: operator actions on the dead letter
// wait on another connection. The median of measured times would show other delays, and ignores stalls of the machine.
TEST_F(PostgresRecords, LockedDeadLetterDelaysNoClaim) {
  PgCluster server(LockLog::settings(100ms));
  store_ = open(server.url() + "?application_name=store", {.writers = 1, .patience = 30s});
  const Uuid id = *fail_one("k").dead_letter;
  const Duration unhindered = claim_some("before").back();
  PgClient blocker(server.url());
  const auto backends =
      blocker.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'store' AND query = 'COMMIT'");
  ASSERT_EQ(backends.size(), 1u);
  const LockLog log(server);
  blocker.execute("BEGIN; SELECT 1 FROM latchkey.dead_letters FOR UPDATE");
  auto acknowledged = later([&] { return store_->acknowledge({}, id, "ann"); });
  auto moved = later([&] { return store_->act_on_dead_letter({.dead_letter = id, .move = RetryByHand{}, .by = "bob"}); });
  ASSERT_TRUE(wait_until([&] { return log.count_lock_timeouts("store") > 0; }))
      << "no operator action waits for the lock";
  const auto taken = claim_some("meanwhile");
  EXPECT_LT(taken[taken.size() / 2], unhindered + 100ms);
  EXPECT_TRUE(store_->acknowledge("another", id, "eve").value() == std::nullopt) << "another tenant's request waits";
  EXPECT_FALSE(log.lock_timeouts("store").contains(std::stoi(backends[0]))) << server.log();
  EXPECT_EQ(log.waits_for_others("store"), std::vector<std::string>{});
  EXPECT_NE(acknowledged.wait_for(0s), std::future_status::ready) << "the acknowledgement did not wait";
  EXPECT_NE(moved.wait_for(0s), std::future_status::ready) << "the retry did not wait";
  blocker.execute("COMMIT");
  EXPECT_EQ(acknowledged.get().value().value().acknowledged_by, "ann");
  EXPECT_TRUE(moved.get().value().value().members.at(0).changed);
  store_.reset();  // before its server
}

TEST_F(PostgresRecords, LongLockRejectsWithoutChange) {
  auto store = open(url(), {.patience = 300ms});
  const Uuid id = *fail_one("k").dead_letter;
  ASSERT_TRUE(store->add_token(token("0123456789abcdef")));
  PgClient blocker(url());
  blocker.execute("BEGIN; SELECT 1 FROM latchkey.dead_letters FOR UPDATE; SELECT 1 FROM latchkey.tokens FOR UPDATE");
  const auto acknowledged = store->acknowledge({}, id, "ann");
  ASSERT_FALSE(acknowledged);
  EXPECT_EQ(acknowledged.error().code, Code::STORE_UNAVAILABLE);
  const auto revoked = store->revoke_token("0123456789abcdef");
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, Code::STORE_UNAVAILABLE);
  blocker.execute("COMMIT");
  EXPECT_FALSE(store->find_dead_letter({}, id).value()->acknowledged_at);
  EXPECT_FALSE(store->list_tokens().value().at(0).revoked_at);
  EXPECT_EQ(store->acknowledge({}, id, "ann").value().value().acknowledged_by, "ann");
  EXPECT_TRUE(store->revoke_token("0123456789abcdef").value());
}

// Every batch with a failure updates the dead letter, so its row is locked all the time, and a SKIP LOCKED probe may
// never succeed. The delay is counted in locks of the other sessions, which are as slow as the machine.
TEST_F(PostgresRecords, AcknowledgeGetsLockAmongWriters) {
  constexpr int kTurnsMax = 60;
  std::atomic<bool> enough{false};
  std::atomic<int> turns{0};
  std::vector<std::jthread> writers;
  for (int i = 0; i < 2; ++i)
    writers.emplace_back([&] {
      PgClient session(url());
      for (; !enough; ++turns)
        session.execute("BEGIN; SELECT 1 FROM latchkey.dead_letters FOR UPDATE; SELECT pg_sleep(0.015); COMMIT");
    });
  for (int i = 0; i < 5; ++i) {
    const Uuid id = *fail_one(std::to_string(i)).dead_letter;
    PgClient(url()).wait_until(
        "SELECT count(*) = 0 FROM (SELECT 1 FROM latchkey.dead_letters WHERE acknowledged_at IS NULL FOR UPDATE SKIP "
        "LOCKED) free");
    const int before = turns;
    const auto acknowledged = store_->acknowledge({}, id, "ann");
    EXPECT_TRUE(acknowledged) << to_string(acknowledged.error());
    EXPECT_LT(turns - before, kTurnsMax);
  }
  enough = true;
}

// Failures and acknowledgements of one function share batches: no acknowledgement is lost, an acknowledged dead letter
// gets no new member, and each failure is in exactly one dead letter.
TEST_F(PostgresRecords, LaterFailureOpensNewDeadLetter) {
  constexpr int kEach = 60, kThreads = 6;
  std::mutex mutex;
  std::map<Uuid, std::uint64_t> acknowledged;  // the count in the reply
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (int n = 0; n < kEach; ++n) {
          const Settled failed = fail_one(std::to_string(i) + "/" + std::to_string(n));
          if (n % 3 != 0) continue;
          const DeadLetter letter = store_->acknowledge({}, *failed.dead_letter, "ann").value().value();
          const std::lock_guard lock(mutex);
          const auto [known, is_new] = acknowledged.try_emplace(letter.id, letter.count);
          EXPECT_EQ(known->second, letter.count) << "the dead letter got a member after it was acknowledged";
        }
      });
  }
  std::uint64_t failures = 0;
  int open = 0;
  const auto letters = store_->list_dead_letters({.with_acknowledged = true, .limit = 1000}).value();
  for (const DeadLetter& letter : letters.entries) {
    failures += letter.count;
    EXPECT_EQ(store_->list_members(letter.id, 1000).value().size(), letter.count);
    EXPECT_EQ(letter.acknowledged_at.has_value(), acknowledged.contains(letter.id));
    if (letter.acknowledged_at) EXPECT_EQ(letter.count, acknowledged[letter.id]);
    if (!letter.acknowledged_at) ++open;
  }
  EXPECT_EQ(failures, std::uint64_t{kEach * kThreads});
  EXPECT_LE(open, 1);
  EXPECT_GT(acknowledged.size(), 1u);
}

TEST_F(PostgresRecords, TokenIsNotReplaced) {
  ASSERT_TRUE(store_->add_token(token("0123456789abcdef")));
  TokenRecord another = token("0123456789abcdef");
  another.name = "another";
  const auto refused = store_->add_token(another);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::STORE_UNAVAILABLE);
  ASSERT_EQ(store_->list_tokens().value().size(), 1u);
  EXPECT_EQ(store_->list_tokens().value()[0].name, "ci");
}

}  // namespace
}  // namespace latchkey
