// A tenant inserts thousands of keys in one open transaction, and claims the same keys through the store. Those claims
// wait for the transaction, and no other caller waits.
#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class ManyContendedKeys : public StoresTest {
 protected:
  static constexpr int kContended = 2'000;
  // The store needs about a millisecond to detect one contended key, so a call that waits for all of them takes longer.
  static constexpr Duration kSlowestMax = 700ms, kUsualMax = 250ms;

  std::string url() const { return server_.url(); }
  PgClient user(const std::string& tenant) {
    PgClient session(url());
    session.execute("SET app.current_tenant = '" + tenant + "'");
    return session;
  }
  // SQL that inserts the first `count` keys in an open transaction.
  static std::string begin_with_keys(int count) {
    return "BEGIN; SELECT latchkey.begin_run('f', 'contended' || i) FROM generate_series(1, " + std::to_string(count) +
           ") i";
  }
  std::future<Result<ClaimReply>> claim(const std::string& tenant, const std::string& key) {
    ClaimRequest request = a_claim(key, tenant);
    request.fingerprint.reset();
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(request, [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  Won win(const std::string& tenant, const std::string& key) { return std::get<Won>(claim(tenant, key).get().value()); }
  // Claims the contended keys of tenant "a", all at once.
  auto claim_contended(int count) {
    std::vector<std::future<Result<ClaimReply>>> replies;
    for (int i = 1; i <= count; ++i) replies.push_back(claim("a", "contended" + std::to_string(i)));
    return replies;
  }
  static void expect_pending(const std::vector<std::future<Result<ClaimReply>>>& replies) {
    for (const auto& reply : replies)
      ASSERT_EQ(reply.wait_for(0ms), std::future_status::timeout) << "a contended claim got its reply early";
  }
  static void expect_busy(std::vector<std::future<Result<ClaimReply>>>& replies) {
    for (auto& reply : replies) ASSERT_TRUE(std::holds_alternative<Busy>(reply.get().value()));
  }
  Duration timed(auto act) {
    const Duration since = clock_.elapsed();
    act();
    return clock_.elapsed() - since;
  }

  PgCluster server_{LockLog::settings(100ms)};
  LockLog log_{server_};
  std::unique_ptr<PostgresStore> store_ = open(url() + "?application_name=store", {.patience = 60s});
};

TEST_F(ManyContendedKeys, DelayNoOtherCaller) {
  PgClient many = user("a"), one = user("b");
  many.execute(begin_with_keys(kContended));
  one.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  win("b", "first");  // opens the connections
  auto contended = claim_contended(kContended);
  auto other = claim("b", "k");
  std::vector<Duration> own, others;
  for (int i = 0; i < 50; ++i) {
    others.push_back(timed([&] { win("b", std::to_string(i)); }));
    own.push_back(timed([&] { win("a", std::to_string(i)); }));
  }
  std::ranges::sort(others);
  EXPECT_LT(others.back(), kSlowestMax);
  // Some of the tenant's other claims wait behind its contended ones.
  std::ranges::sort(own);
  EXPECT_LT(own[own.size() * 8 / 10], kUsualMax);
  ASSERT_EQ(other.wait_for(0ms), std::future_status::timeout) << "the contended claim got its reply early";
  EXPECT_LT(timed([&] {
              one.execute("COMMIT");
              EXPECT_TRUE(std::holds_alternative<Busy>(other.get().value()));
            }),
            kSlowestMax);
  expect_pending(contended);
  many.execute("COMMIT");
  expect_busy(contended);
  // Each writer times out once, then the contended writer probes the keys apart from other batches.
  EXPECT_LE(log_.count_lock_timeouts("store"), 10u) << server_.log();
}

// While the tenant is quarantined, the store probes the key of each follow-up before it inserts it.
TEST_F(ManyContendedKeys, DoNotBlockSettleWithNewKeys) {
  const Won own = win("a", "own");
  PgClient many = user("a");
  many.execute(begin_with_keys(kContended));
  auto contended = claim_contended(kContended);
  win("a", "another");  // the store has detected the contention then
  std::vector<EnqueueRequest> follow_ups;
  for (int i = 0; i < 40; ++i) follow_ups.push_back(a_job("next" + std::to_string(i), "a"));
  const Duration taken = timed([&] {
    EXPECT_TRUE(
        std::get<Settled>(Verbs(*store_).settle({{}, own.run.id(), own.fence, Complete{"r", follow_ups}})).changed);
  });
  EXPECT_LT(taken, kSlowestMax);
  expect_pending(contended);
  many.execute("COMMIT");
  expect_busy(contended);
}

// A tenant's transaction locks its runs while the tenant settles them. Another tenant's settlement gets its turn
// between them.
TEST_F(ManyContendedKeys, TenantsSettleInTurn) {
  constexpr int kRuns = 8'000;
  std::vector<std::future<Result<ClaimReply>>> claims;
  for (int i = 0; i < kRuns; ++i) claims.push_back(claim("a", std::to_string(i)));
  const auto settle = [&](const std::string& tenant, const Won& won) {
    auto promise = std::make_shared<std::promise<bool>>();
    store_->settle({{tenant, won.run.id(), won.fence, Complete{"r", {}}}}, [promise](auto replies) {
      promise->set_value(replies && std::get<Settled>(replies->front()).changed);
    });
    return promise->get_future();
  };
  std::vector<Won> runs;
  for (auto& reply : claims) runs.push_back(std::get<Won>(reply.get().value()));
  const Won one = win("b", "k");
  PgClient many(url()), few(url());
  many.execute("BEGIN; SELECT seq FROM latchkey.states WHERE tenant = 'a' FOR UPDATE");
  few.execute("BEGIN; SELECT seq FROM latchkey.states WHERE tenant = 'b' FOR UPDATE");
  std::vector<std::future<bool>> settled;
  for (const Won& run : runs) settled.push_back(settle("a", run));
  auto other = settle("b", one);
  std::this_thread::sleep_for(1s);
  ASSERT_EQ(other.wait_for(0ms), std::future_status::timeout) << "the settlement of a locked run got its reply early";
  EXPECT_LT(timed([&] {
              few.execute("COMMIT");
              EXPECT_TRUE(other.get());
            }),
            2 * kSlowestMax)
      << "it waited behind all settlements of the other tenant";
  for (const auto& reply : settled)
    ASSERT_EQ(reply.wait_for(0ms), std::future_status::timeout) << "the settlement of a locked run got its reply early";
  many.execute("COMMIT");
  for (auto& reply : settled) EXPECT_TRUE(reply.get());
}

// Once the store has detected the contention, other calls of the same tenant are as fast as before.
TEST_F(ManyContendedKeys, DoNotSlowTenantOnceDetected) {
  constexpr int kFew = 100, kJobs = 5'000;
  PgClient many = user("a");
  many.execute(begin_with_keys(kFew));
  auto contended = claim_contended(kFew);
  std::this_thread::sleep_for(2s);
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < kJobs; ++i) jobs.push_back(a_job("job" + std::to_string(i), "a"));
  EXPECT_LT(timed([&] { EXPECT_EQ(Verbs(*store_).enqueue_all(jobs).size(), jobs.size()); }), 2 * kSlowestMax);
  for (int i = 0; i < 50; ++i) EXPECT_LT(timed([&] { win("a", std::to_string(i)); }), kUsualMax);
  expect_pending(contended);
  many.execute("COMMIT");
  expect_busy(contended);
}

}  // namespace
}  // namespace latchkey
