// A run that somebody's open transaction holds, and for which is asked again and again: whoever asks waits, and nobody
// else, however often. The server itself says how often a lane waited.
#include <future>

#include "conformance/store_test.hpp"
#include "integration/pg_lock_log.hpp"
#include "integration/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresHeldRuns : public StoresTest {
 protected:
  static constexpr int kAsked = 60;
  // At most one on each of the four lanes, and on the one of what is held, before all of them know.
  static constexpr std::uint64_t kOnEachLane = 5;

  std::future<ExtendReply> extend(const Won& won, Duration lease = 1min) {
    auto told = std::make_shared<std::promise<ExtendReply>>();
    store_->extend({{.tenant = "default", .id = won.run.id(), .fence = won.fence, .lease = lease}},
                   [told](Result<std::vector<ExtendReply>> replies) {
                     told->set_value(replies ? std::move(replies->front()) : ExtendReply(replies.error()));
                   });
    return told->get_future();
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
  std::vector<std::future<ExtendReply>> waiting;
  for (int i = 0; i < kAsked; ++i) {
    waiting.push_back(extend(held));
    // Whoever comes at the same time goes into the same batch.
    const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other" + std::to_string(i))));
    EXPECT_TRUE(
        std::holds_alternative<Settled>(Verbs(*store_).settle({{}, other.run.id(), other.fence, Complete{"r", {}}})));
  }
  EXPECT_LE(log_.given_up("store"), kOnEachLane) << "each of them has held up all that was in its batch";
  for (auto& each : waiting) EXPECT_EQ(each.wait_for(0s), std::future_status::timeout) << "answered too early";
  user_.execute("COMMIT");
  for (auto& each : waiting) EXPECT_TRUE(std::holds_alternative<Extended>(each.get()));
  // It is nobody's any more, and known to be.
  EXPECT_TRUE(std::holds_alternative<Extended>(extend(held).get()));
  EXPECT_TRUE(
      std::holds_alternative<Settled>(Verbs(*store_).settle({{}, held.run.id(), held.fence, Complete{"r", {}}})));
}

// Of several that are settled in one call the others do not wait, and the answer is the one that stands in the end.
TEST_F(PostgresHeldRuns, ASettlementThatWasHeldIsToldWhatBecameOfIt) {
  const Won held = std::get<Won>(Verbs(*store_).claim(a_claim("held")));
  user_.execute("BEGIN; SELECT latchkey.complete_run(" + name(held) + ", 'by the user')");
  std::vector<std::future<std::vector<SettleReply>>> waiting;
  for (int i = 0; i < kAsked; ++i) {
    const Won other = std::get<Won>(Verbs(*store_).claim(a_claim("other" + std::to_string(i))));
    auto told = std::make_shared<std::promise<std::vector<SettleReply>>>();
    store_->settle({{.id = other.run.id(), .fence = other.fence, .ending = Complete{"r", {}}},
                    {.id = held.run.id(), .fence = held.fence, .ending = Complete{"by the store", {}}}},
                   [told](Result<std::vector<SettleReply>> replies) { told->set_value(std::move(replies.value())); });
    waiting.push_back(told->get_future());
  }
  EXPECT_LE(log_.given_up("store"), kOnEachLane);
  user_.execute("COMMIT");
  for (auto& each : waiting) {
    const auto replies = each.get();
    EXPECT_TRUE(std::get<Settled>(replies[0]).changed);
    ASSERT_TRUE(std::holds_alternative<Settled>(replies[1]));
    EXPECT_FALSE(std::get<Settled>(replies[1]).changed) << "settled twice";
    EXPECT_EQ(std::get<Settled>(replies[1]).run.as<Completed>()->result, "by the user");
  }
}

}  // namespace
}  // namespace latchkey
