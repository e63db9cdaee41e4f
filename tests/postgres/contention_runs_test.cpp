// A run that a user's open transaction has locked, and repeated calls for that run: only those calls wait. The server's
// log shows how often each writer waited.
#include <algorithm>
#include <future>
#include <map>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class ContendedRuns : public StoresTest {
 protected:
  static constexpr int kRepeats = 60;

  // Each of the four writers may time out once, before the store has detected the contention. The contended writer
  // times out now and then.
  void expect_few_timeouts(Duration asked_for) {
    std::map<int, std::uint64_t> times;
    for (const int session : log_.lock_timeouts("store")) times[session] += 1;
    std::uint64_t all = 0, most = 0;
    for (const auto& [session, of] : times) all += of, most = std::max(most, of);
    EXPECT_LE(all - most, 4u) << "other batches were delayed";
    EXPECT_LE(most, 2 + static_cast<std::uint64_t>(asked_for / 400ms));
  }
  std::future<std::vector<ExtendReply>> extend_all(std::vector<ExtendRequest> requests) {
    auto promise = std::make_shared<std::promise<std::vector<ExtendReply>>>();
    store_->extend(std::move(requests), [promise](Result<std::vector<ExtendReply>> replies) {
      promise->set_value(std::move(replies.value()));
    });
    return promise->get_future();
  }
  std::future<std::vector<ExtendReply>> extend(const Won& won) { return extend_all({request_of(won)}); }
  static ExtendRequest request_of(const Won& won) {
    return {.tenant = "default", .id = won.run.id(), .fence = won.fence, .lease = 1min};
  }
  static bool are_extended(const std::vector<ExtendReply>& replies) {
    return std::ranges::all_of(replies, [](const auto& each) { return std::holds_alternative<Extended>(each); });
  }
  static std::string name(const Won& won) {
    return "'" + to_string(won.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(won.fence));
  }

  PgCluster server_{LockLog::settings(100ms)};
  LockLog log_{server_};
  std::unique_ptr<PostgresStore> store_ = open(server_.url() + "?application_name=store", {.patience = 30s});
  PgClient user_ = [this] {
    PgClient session(server_.url());
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }();
};

TEST_F(ContendedRuns, ExtendsDelayNoOtherBatch) {
  const Won locked = std::get<Won>(Verbs(*store_).claim(a_claim("locked")));
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(locked) + ")");
  std::vector<std::future<std::vector<ExtendReply>>> waiting;
  const Duration start = clock_.elapsed();
  for (int i = 0; i < kRepeats; ++i) {
    waiting.push_back(extend(locked));
    // Concurrent calls share a batch with the extend.
    const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other" + std::to_string(i))));
    EXPECT_TRUE(
        std::holds_alternative<Settled>(Verbs(*store_).settle({{}, other.run.id(), other.fence, Complete{"r", {}}})));
  }
  expect_few_timeouts(clock_.elapsed() - start);
  for (auto& each : waiting)
    EXPECT_EQ(each.wait_for(0s), std::future_status::timeout) << "the reply came before the lock was released";
  user_.execute("COMMIT");
  for (auto& each : waiting) EXPECT_TRUE(are_extended(each.get()));
  // The store has noticed that the run is unlocked.
  EXPECT_TRUE(are_extended(extend(locked).get()));
  EXPECT_TRUE(
      std::holds_alternative<Settled>(Verbs(*store_).settle({{}, locked.run.id(), locked.fence, Complete{"r", {}}})));
}

// One call settles a locked run and a free one. The free run does not wait, and the locked one gets the user's result.
TEST_F(ContendedRuns, ParkedSettleGetsTheUsersResult) {
  const Won locked = std::get<Won>(Verbs(*store_).claim(a_claim("locked")));
  user_.execute("BEGIN; SELECT latchkey.complete_run(" + name(locked) + ", 'by the user')");
  std::vector<std::future<std::vector<SettleReply>>> waiting;
  const Duration start = clock_.elapsed();
  for (int i = 0; i < kRepeats; ++i) {
    const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other" + std::to_string(i))));
    auto promise = std::make_shared<std::promise<std::vector<SettleReply>>>();
    store_->settle(
        {{.id = other.run.id(), .fence = other.fence, .ending = Complete{"r", {}}},
         {.id = locked.run.id(), .fence = locked.fence, .ending = Complete{"by the store", {}}}},
        [promise](Result<std::vector<SettleReply>> replies) { promise->set_value(std::move(replies.value())); });
    waiting.push_back(promise->get_future());
  }
  expect_few_timeouts(clock_.elapsed() - start);
  user_.execute("COMMIT");
  for (auto& each : waiting) {
    const auto replies = each.get();
    EXPECT_TRUE(std::get<Settled>(replies[0]).changed);
    ASSERT_TRUE(std::holds_alternative<Settled>(replies[1]));
    EXPECT_FALSE(std::get<Settled>(replies[1]).changed) << "settled twice";
    EXPECT_EQ(std::get<Settled>(replies[1]).run.as<Completed>()->result, "by the user");
  }
}

// The store rejects only the locked run of a call, and notices at once that the run is unlocked.
TEST_F(ContendedRuns, ExtendNoticesReleasedLockAtOnce) {
  const Won locked = std::get<Won>(Verbs(*store_).claim(a_claim("locked")));
  const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other")));
  const std::vector<ExtendRequest> both{request_of(locked), request_of(other)};
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(locked) + ")");
  for (int i = 0; i < 3; ++i) {
    const auto replies = extend_all(both).get();
    EXPECT_TRUE(std::holds_alternative<Error>(replies[0]));
    EXPECT_TRUE(std::holds_alternative<Extended>(replies[1]));
  }
  user_.execute("COMMIT");
  EXPECT_TRUE(are_extended(extend_all(both).get()));
}

// A claim of the run's key gets its reply at once, although extends in the same batches wait.
TEST_F(ContendedRuns, ClaimOfTheirKeyIsBusyAtOnce) {
  const Won locked = std::get<Won>(Verbs(*store_).claim(a_claim("locked")));
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(locked) + ")");
  std::vector<std::future<std::vector<ExtendReply>>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(extend(locked));
    EXPECT_TRUE(std::holds_alternative<Busy>(Verbs(*store_).claim(a_claim("locked"))));
  }
  for (auto& each : waiting) EXPECT_EQ(each.wait_for(0s), std::future_status::timeout);
  user_.execute("COMMIT");
  for (auto& each : waiting) EXPECT_TRUE(are_extended(each.get()));
}

// Programs lock the run one after another without a pause. The run is never unlocked, so the store must queue for it.
TEST_F(ContendedRuns, StoreGetsTheLockAmongManySessions) {
  const Won locked_long = std::get<Won>(Verbs(*store_).claim(a_claim("locked_long")));
  const Won locked = std::get<Won>(Verbs(*store_).claim(a_claim("locked")));
  std::atomic<int> turns{0};
  std::vector<std::jthread> programs;
  for (int i = 0; i < 3; ++i)
    programs.emplace_back([&](const std::stop_token& enough) {
      PgClient session(server_.url());
      session.execute("SET app.current_tenant = 'default'");
      for (; !enough.stop_requested(); ++turns)
        session.execute("BEGIN; SELECT latchkey.heartbeat(" + name(locked) + "); SELECT pg_sleep(0.01); COMMIT");
    });
  ASSERT_TRUE(wait_until([&] { return turns >= 3; }));
  // One session has the lock for longer than the lock timeout, so the store detects the contention. Another run stays
  // locked to the end.
  PgClient for_long(server_.url());
  for_long.execute("SET app.current_tenant = 'default'; BEGIN; SELECT latchkey.heartbeat(" + name(locked_long) + ")");
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(locked) + ")");
  auto parked = extend(locked_long);
  auto first = extend(locked);
  EXPECT_EQ(first.wait_for(200ms), std::future_status::timeout);
  user_.execute("COMMIT");
  EXPECT_TRUE(are_extended(first.get()));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(are_extended(extend(locked).get()));
  EXPECT_EQ(parked.wait_for(0s), std::future_status::timeout);
  for_long.execute("COMMIT");
  EXPECT_TRUE(are_extended(parked.get()));
}

}  // namespace
}  // namespace latchkey
