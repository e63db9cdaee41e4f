// A tenant that holds thousands of keys in one transaction, and asks for all of them: it waits for itself, and nobody
// for it.
#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresHeldCrowd : public StoresTest {
 protected:
  static constexpr int kHeld = 2'000;
  // To see that a key is held takes a millisecond: whoever had to wait for all of them would need longer.
  static constexpr Duration kMost = 700ms, kMostly = 250ms;

  std::string url() const { return server_.url(); }
  PgClient user(const std::string& tenant) {
    PgClient session(url());
    session.execute("SET app.current_tenant = '" + tenant + "'");
    return session;
  }
  // The first so many of the keys that there are.
  static std::string hold(int count) {
    return "BEGIN; SELECT latchkey.begin_run('f', 'held' || i) FROM generate_series(1, " + std::to_string(count) +
           ") i";
  }
  std::future<Result<ClaimReply>> ask(const std::string& tenant, const std::string& key) {
    ClaimRequest request = a_claim(key, tenant);
    request.fingerprint.reset();
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(request, [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  Won win(const std::string& tenant, const std::string& key) { return std::get<Won>(ask(tenant, key).get().value()); }
  // What the first tenant holds, as fast as it can.
  auto ask_for_held(int count) {
    std::vector<std::future<Result<ClaimReply>>> replies;
    for (int i = 1; i <= count; ++i) replies.push_back(ask("a", "held" + std::to_string(i)));
    return replies;
  }
  static void expect_open(const std::vector<std::future<Result<ClaimReply>>>& replies) {
    for (const auto& reply : replies)
      ASSERT_EQ(reply.wait_for(0ms), std::future_status::timeout) << "the test did not test";
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

TEST_F(PostgresHeldCrowd, DelaysNobody) {
  PgClient many = user("a"), one = user("b");
  many.execute(hold(kHeld));
  one.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  win("b", "first");  // the connections are open then
  auto crowd = ask_for_held(kHeld);
  auto held = ask("b", "k");
  std::vector<Duration> own, others;
  for (int i = 0; i < 50; ++i) {
    others.push_back(timed([&] { win("b", std::to_string(i)); }));
    own.push_back(timed([&] { win("a", std::to_string(i)); }));
  }
  std::ranges::sort(others);
  EXPECT_LT(others.back(), kMost);
  // Those of its own that come amid the crowd have their turn in it.
  std::ranges::sort(own);
  EXPECT_LT(own[own.size() * 8 / 10], kMostly);
  ASSERT_EQ(held.wait_for(0ms), std::future_status::timeout) << "the test did not test";
  EXPECT_LT(timed([&] {
              one.execute("COMMIT");
              EXPECT_TRUE(std::holds_alternative<Busy>(held.get().value()));
            }),
            kMost);
  expect_open(crowd);
  many.execute("COMMIT");
  expect_busy(crowd);
  // Each lane has met it once, and the one of what is held; what came then was looked at apart.
  EXPECT_LE(log_.given_up("store"), 10u) << server_.log();
}

// Each of its follow-ups is one more key that is looked at first.
TEST_F(PostgresHeldCrowd, ASettlementWithManyNewKeysComesThrough) {
  const Won own = win("a", "own");
  PgClient many = user("a");
  many.execute(hold(kHeld));
  auto crowd = ask_for_held(kHeld);
  win("a", "another");  // that much is known then
  std::vector<EnqueueRequest> follow_ups;
  for (int i = 0; i < 40; ++i) follow_ups.push_back(a_job("next" + std::to_string(i), "a"));
  const Duration taken = timed([&] {
    EXPECT_TRUE(
        std::get<Settled>(Verbs(*store_).settle({{}, own.run.id(), own.fence, Complete{"r", follow_ups}})).changed);
  });
  EXPECT_LT(taken, kMost);
  expect_open(crowd);
  many.execute("COMMIT");
  expect_busy(crowd);
}

// Runs that one tenant's transaction locks, and which it settles all the same: another's have their turn between them.
TEST_F(PostgresHeldCrowd, SettlementsTakeTurns) {
  constexpr int kRuns = 8'000;
  std::vector<std::future<Result<ClaimReply>>> claims;
  for (int i = 0; i < kRuns; ++i) claims.push_back(ask("a", std::to_string(i)));
  const auto settle = [&](const std::string& tenant, const Won& won) {
    auto promise = std::make_shared<std::promise<bool>>();
    store_->settle({{tenant, won.run.id(), won.fence, Complete{"r", {}}}}, [promise](auto replies) {
      promise->set_value(replies && std::get<Settled>(replies->front()).changed);
    });
    return promise->get_future();
  };
  std::vector<Won> runs;
  for (auto& claim : claims) runs.push_back(std::get<Won>(claim.get().value()));
  const Won one = win("b", "k");
  PgClient many(url()), few(url());
  many.execute("BEGIN; SELECT seq FROM latchkey.states WHERE tenant = 'a' FOR UPDATE");
  few.execute("BEGIN; SELECT seq FROM latchkey.states WHERE tenant = 'b' FOR UPDATE");
  std::vector<std::future<bool>> settled;
  for (const Won& run : runs) settled.push_back(settle("a", run));
  auto held = settle("b", one);
  std::this_thread::sleep_for(1s);
  ASSERT_EQ(held.wait_for(0ms), std::future_status::timeout) << "the test did not test";
  EXPECT_LT(timed([&] {
              few.execute("COMMIT");
              EXPECT_TRUE(held.get());
            }),
            2 * kMost)
      << "without turns it would be behind all of theirs";
  for (const auto& reply : settled)
    ASSERT_EQ(reply.wait_for(0ms), std::future_status::timeout) << "the test did not test";
  many.execute("COMMIT");
  for (auto& reply : settled) EXPECT_TRUE(reply.get());
}

// Once it is known what is held, whatever else the same tenant does goes on as ever.
TEST_F(PostgresHeldCrowd, ThatIsKnownSlowsNothing) {
  constexpr int kFew = 100, kJobs = 5'000;
  PgClient many = user("a");
  many.execute(hold(kFew));
  auto crowd = ask_for_held(kFew);
  std::this_thread::sleep_for(2s);
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < kJobs; ++i) jobs.push_back(a_job("job" + std::to_string(i), "a"));
  EXPECT_LT(timed([&] { EXPECT_EQ(Verbs(*store_).enqueue_all(jobs).size(), jobs.size()); }), 2 * kMost);
  for (int i = 0; i < 50; ++i) EXPECT_LT(timed([&] { win("a", std::to_string(i)); }), kMostly);
  expect_open(crowd);
  many.execute("COMMIT");
  expect_busy(crowd);
}

}  // namespace
}  // namespace latchkey
