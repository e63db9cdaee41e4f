// A run that somebody's open transaction holds, and for which is asked again and again: whoever asks waits, and nobody
// else, however often. The server itself says how often a lane waited.
#include <algorithm>
#include <future>
#include <map>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/pg_lock_log.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresHeldRuns : public StoresTest {
 protected:
  static constexpr int kAsked = 60;

  // Each of the four lanes may wait once, before all of them know. The one of what is held waits now and then.
  void expect_few_waits(Duration asked_for) {
    std::map<int, std::uint64_t> times;
    for (const int session : log_.who_gave_up("store")) times[session] += 1;
    std::uint64_t all = 0, most = 0;
    for (const auto& [session, of] : times) all += of, most = std::max(most, of);
    EXPECT_LE(all - most, 4u) << "others' batches were held up";
    EXPECT_LE(most, 2 + static_cast<std::uint64_t>(asked_for / 400ms));
  }
  std::future<std::vector<ExtendReply>> extend_all(std::vector<ExtendRequest> requests) {
    auto told = std::make_shared<std::promise<std::vector<ExtendReply>>>();
    store_->extend(std::move(requests),
                   [told](Result<std::vector<ExtendReply>> replies) { told->set_value(std::move(replies.value())); });
    return told->get_future();
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

TEST_F(PostgresHeldRuns, WhoAsksForOneWaitsAloneHoweverOften) {
  const Won held = std::get<Won>(Verbs(*store_).claim(a_claim("held")));
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(held) + ")");
  std::vector<std::future<std::vector<ExtendReply>>> waiting;
  const Duration start = clock_.elapsed();
  for (int i = 0; i < kAsked; ++i) {
    waiting.push_back(extend(held));
    // Whoever comes at the same time goes into the same batch.
    const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other" + std::to_string(i))));
    EXPECT_TRUE(
        std::holds_alternative<Settled>(Verbs(*store_).settle({{}, other.run.id(), other.fence, Complete{"r", {}}})));
  }
  expect_few_waits(clock_.elapsed() - start);
  for (auto& each : waiting) EXPECT_EQ(each.wait_for(0s), std::future_status::timeout) << "answered too early";
  user_.execute("COMMIT");
  for (auto& each : waiting) EXPECT_TRUE(are_extended(each.get()));
  // It is nobody's any more, and known to be.
  EXPECT_TRUE(are_extended(extend(held).get()));
  EXPECT_TRUE(
      std::holds_alternative<Settled>(Verbs(*store_).settle({{}, held.run.id(), held.fence, Complete{"r", {}}})));
}

// Of several that are settled in one call the others do not wait, and the answer is the one that stands in the end.
TEST_F(PostgresHeldRuns, ASettlementThatWasHeldIsToldWhatBecameOfIt) {
  const Won held = std::get<Won>(Verbs(*store_).claim(a_claim("held")));
  user_.execute("BEGIN; SELECT latchkey.complete_run(" + name(held) + ", 'by the user')");
  std::vector<std::future<std::vector<SettleReply>>> waiting;
  const Duration start = clock_.elapsed();
  for (int i = 0; i < kAsked; ++i) {
    const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other" + std::to_string(i))));
    auto told = std::make_shared<std::promise<std::vector<SettleReply>>>();
    store_->settle({{.id = other.run.id(), .fence = other.fence, .ending = Complete{"r", {}}},
                    {.id = held.run.id(), .fence = held.fence, .ending = Complete{"by the store", {}}}},
                   [told](Result<std::vector<SettleReply>> replies) { told->set_value(std::move(replies.value())); });
    waiting.push_back(told->get_future());
  }
  expect_few_waits(clock_.elapsed() - start);
  user_.execute("COMMIT");
  for (auto& each : waiting) {
    const auto replies = each.get();
    EXPECT_TRUE(std::get<Settled>(replies[0]).changed);
    ASSERT_TRUE(std::holds_alternative<Settled>(replies[1]));
    EXPECT_FALSE(std::get<Settled>(replies[1]).changed) << "settled twice";
    EXPECT_EQ(std::get<Settled>(replies[1]).run.as<Completed>()->result, "by the user");
  }
}

// What it was known by is not believed for longer than it is so; others in the same call are not refused with it.
TEST_F(PostgresHeldRuns, ACallThatExtendsSeveralFindsItFreeAtOnce) {
  const Won held = std::get<Won>(Verbs(*store_).claim(a_claim("held")));
  const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other")));
  const std::vector<ExtendRequest> both{request_of(held), request_of(other)};
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(held) + ")");
  for (int i = 0; i < 3; ++i) {
    const auto replies = extend_all(both).get();
    EXPECT_TRUE(std::holds_alternative<Error>(replies[0]));
    EXPECT_TRUE(std::holds_alternative<Extended>(replies[1]));
  }
  user_.execute("COMMIT");
  EXPECT_TRUE(are_extended(extend_all(both).get()));
}

// Who asks by its key is told at once that it is running, though others wait for it in the same batches.
TEST_F(PostgresHeldRuns, WhoAsksByItsKeyIsToldHowItStands) {
  const Won held = std::get<Won>(Verbs(*store_).claim(a_claim("held")));
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(held) + ")");
  std::vector<std::future<std::vector<ExtendReply>>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(extend(held));
    EXPECT_TRUE(std::holds_alternative<Busy>(Verbs(*store_).claim(a_claim("held"))));
  }
  for (auto& each : waiting) EXPECT_EQ(each.wait_for(0s), std::future_status::timeout);
  user_.execute("COMMIT");
  for (auto& each : waiting) EXPECT_TRUE(are_extended(each.get()));
}

// Programs that have it one after the other, without a pause: it is free at no moment, and there is a queue for it.
TEST_F(PostgresHeldRuns, AmongManyWhoHaveItInTurnTheStoreHasItsTurn) {
  const Won kept = std::get<Won>(Verbs(*store_).claim(a_claim("kept")));
  const Won held = std::get<Won>(Verbs(*store_).claim(a_claim("held")));
  std::atomic<int> turns{0};
  std::vector<std::jthread> programs;
  for (int i = 0; i < 3; ++i)
    programs.emplace_back([&](const std::stop_token& enough) {
      PgClient session(server_.url());
      session.execute("SET app.current_tenant = 'default'");
      for (; !enough.stop_requested(); ++turns)
        session.execute("BEGIN; SELECT latchkey.heartbeat(" + name(held) + "); SELECT pg_sleep(0.01); COMMIT");
    });
  ASSERT_TRUE(comes_true([&] { return turns >= 3; }));
  // One keeps it for longer than a lane waits: it is known to be held. So is another, which stays so.
  PgClient for_long(server_.url());
  for_long.execute("SET app.current_tenant = 'default'; BEGIN; SELECT latchkey.heartbeat(" + name(kept) + ")");
  user_.execute("BEGIN; SELECT latchkey.heartbeat(" + name(held) + ")");
  auto in_vain = extend(kept);
  auto first = extend(held);
  EXPECT_EQ(first.wait_for(200ms), std::future_status::timeout);
  user_.execute("COMMIT");
  EXPECT_TRUE(are_extended(first.get()));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(are_extended(extend(held).get()));
  EXPECT_EQ(in_vain.wait_for(0s), std::future_status::timeout);
  for_long.execute("COMMIT");
  EXPECT_TRUE(are_extended(in_vain.get()));
}

}  // namespace
}  // namespace latchkey
