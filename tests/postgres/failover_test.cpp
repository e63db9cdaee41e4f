// PostgreSQL stops, crashes, or another one takes its place, under load: in synchronous mode what was acknowledged is
// there and nothing is doubled. What asynchronous mode may lose is shown too.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "engine/engine.hpp"
#include "migrate/open_postgres.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_ledger.hpp"

namespace latchkey {
namespace {

class PostgresOutages : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url, Duration reply_max = 15s) {
    auto opened = migrate::open_postgres({.url = url, .patience = 60s, .reply_max = reply_max}, clock_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  // Callers that go on until the end; `disturb` is called from this thread, which started the servers. It may wait for
  // more answers by answers(n).
  void under_load(Ledger& ledger, auto disturb) {
    std::atomic<bool> enough{false};
    std::jthread callers([&] { ledger.run(6, [&] { return enough.load(); }); });
    const auto answers = [&](std::uint64_t more) {
      const std::uint64_t until = ledger.acknowledged() + more;
      EXPECT_TRUE(ledger.wait_for_answers(until, 2 * kPatience)) << "the callers are stuck";
    };
    disturb(answers);
    enough = true;
  }

  SystemClock clock_;
  SystemRandom random_;
};

class PostgresRestarts : public PostgresOutages, public testing::WithParamInterface<PgStop> {};
INSTANTIATE_TEST_SUITE_P(Of, PostgresRestarts, testing::Values(PgStop::fast, PgStop::immediate),
                         [](const auto& how) { return how.param == PgStop::fast ? "fast" : "immediate"; });

TEST_P(PostgresRestarts, NothingAcknowledgedIsLostNothingIsDoubled) {
  PgCluster server;
  auto one = open(server.url()), two = open(server.url());
  Ledger ledger({one.get(), two.get()}, 11);
  under_load(ledger, [&](auto answers) {
    for (int i = 0; i < 4; ++i) {
      answers(150);
      server.stop(GetParam());
      server.start();
    }
    answers(150);
  });
  ledger.check(*open(server.url()));
}

class PostgresFailover : public PostgresOutages {
 protected:
  // Commits wait for the standby, until it is promoted.
  void replicate_synchronously() {
    primary_.stop(PgStop::fast);
    primary_.start({"synchronous_standby_names=standby", "synchronous_commit=on"});
    PgClient(primary_.url()).wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
  }
  std::string both() const {
    return "postgres://latchkey@127.0.0.1:" + std::to_string(primary_.port()) +
           ",127.0.0.1:" + std::to_string(standby_->port()) +
           "/postgres?target_session_attrs=read-write&connect_timeout=5";
  }
  // The backend of a store that waits for the standby's word, started after `since`.
  std::string waiting_backend(PgClient& watch, const std::string& since) {
    return watch.ask_one(
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = "
        "'client backend' AND query_start > '" +
        since + "' LIMIT 1");
  }
  // A call whose commit waits for a standby that is gone; then `act` on the backend that waits. Whatever that does, the
  // call is not answered before the standby has it, which is then promoted.
  template <class Reply>
  Reply interrupt_waiting(const std::string& act, const std::function<std::future<Reply>()>& call) {
    PgClient watch(primary_.url());
    const std::string since = watch.ask_one("SELECT clock_timestamp()");
    standby_->stop(PgStop::immediate);
    auto answer = call();
    std::string waiting;
    EXPECT_TRUE(comes_true([&] { return !(waiting = waiting_backend(watch, since)).empty(); }))
        << "nobody waits for the standby";
    const std::string struck = watch.ask_one("SELECT clock_timestamp()");
    if (!waiting.empty()) watch.execute("SELECT " + act + "(" + waiting + ")");
    // It must ask again, and that waits too.
    const auto is_answered = [&] { return answer.wait_for(0s) == std::future_status::ready; };
    EXPECT_TRUE(comes_true([&] { return is_answered() || !waiting_backend(watch, struck).empty(); }))
        << "nobody asks what became of it";
    EXPECT_FALSE(is_answered()) << "acknowledged, and the standby does not have it";
    standby_->start();
    Reply reply = answer.get();
    primary_.stop(PgStop::immediate);
    standby_->promote();
    return reply;
  }
  void interrupt_claim(const std::string& act) {
    replicate_synchronously();
    auto store = open(primary_.url());
    ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim("before"))));
    const auto reply = interrupt_waiting<ClaimReply>(act, [&] {
      auto told = std::make_shared<std::promise<ClaimReply>>();
      store->claim(a_claim("k"), [told](Result<ClaimReply> answer) { told->set_value(answer.value()); });
      return told->get_future();
    });
    ASSERT_TRUE(std::holds_alternative<Won>(reply));
    auto after = open(standby_->url());
    EXPECT_TRUE(after->find({}, std::get<Won>(reply).run.id()).value()) << "what was acknowledged is lost";
    EXPECT_EQ(after->list({}).value().runs.size(), 2u);
  }
  void interrupt_acknowledgement(const std::string& act) {
    replicate_synchronously();
    auto store = open(primary_.url());
    const Won won = std::get<Won>(Verbs(*store).claim(a_claim("k")));
    const Uuid letter =
        std::get<Settled>(Verbs(*store).settle({{}, won.run.id(), won.fence, permanent()})).dead_letter.value();
    using Reply = Result<std::optional<DeadLetter>>;
    const auto reply = interrupt_waiting<Reply>(
        act, [&] { return std::async(std::launch::async, [&] { return store->acknowledge({}, letter, "ann"); }); });
    ASSERT_TRUE(reply) << to_string(reply.error());
    const auto kept = open(standby_->url())->find_dead_letter({}, letter).value().value();
    EXPECT_EQ(kept.acknowledged_by, "ann") << "what was acknowledged is lost";
    EXPECT_EQ(kept.acknowledged_at, (*reply)->acknowledged_at);
  }

  PgCluster primary_;
  std::unique_ptr<PgCluster> standby_ = PgCluster::make_standby(primary_);
};

TEST_F(PostgresFailover, SynchronousLosesNothingAndDoublesNothing) {
  replicate_synchronously();
  auto one = open(both()), two = open(both());
  Ledger ledger({one.get(), two.get()}, 12);
  under_load(ledger, [&](auto answers) {
    answers(300);
    ledger.allow_lost_leases();
    primary_.stop(PgStop::immediate);
    standby_->promote();
    answers(300);
  });
  ledger.check(*open(standby_->url()));
}

TEST_F(PostgresFailover, AStandbyThatIsNamedFirstIsPassedOver) {
  auto store = open("postgres://latchkey@127.0.0.1:" + std::to_string(standby_->port()) +
                    ",127.0.0.1:" + std::to_string(primary_.port()) + "/postgres?target_session_attrs=read-write");
  EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim())));
}

// The server then says that it committed, with a warning: the commit is here and perhaps nowhere else.
TEST_F(PostgresFailover, ACancelledWaitForTheStandbyIsNotSuccess) { interrupt_claim("pg_cancel_backend"); }
TEST_F(PostgresFailover, ATerminatedWaitForTheStandbyIsNotSuccess) { interrupt_claim("pg_terminate_backend"); }
TEST_F(PostgresFailover, ACancelledWaitOfAnAcknowledgementIsNotSuccess) {
  interrupt_acknowledgement("pg_cancel_backend");
}
TEST_F(PostgresFailover, ATerminatedWaitOfAnAcknowledgementIsNotSuccess) {
  interrupt_acknowledgement("pg_terminate_backend");
}

// The store gives up a connection that is silent for long, as one is whose commit waits for the standby. It must not
// end that wait: the server would show the commit to everybody else, and the standby may be promoted without it.
TEST_F(PostgresFailover, WhatWaitsForTheStandbyIsShownToNobodyHoweverLongItTakes) {
  replicate_synchronously();
  auto store = open(primary_.url(), 1s);
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim("before"))));
  PgClient watch(primary_.url());
  const std::string since = watch.ask_one("SELECT clock_timestamp()");
  standby_->stop(PgStop::immediate);
  std::promise<Result<ClaimReply>> told;
  store->claim(a_claim("k"), [&](Result<ClaimReply> answer) { told.set_value(std::move(answer)); });
  std::string waiting;
  ASSERT_TRUE(comes_true([&] { return !(waiting = waiting_backend(watch, since)).empty(); }))
      << "nobody waits for the standby";
  // Given up, and asked what became of it, by another session.
  watch.wait_until(
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO latchkey.batches AS b%' OR (wait_event "
      "= "
      "'SyncRep' AND pid <> " +
      waiting + ")");
  EXPECT_EQ(watch.ask_one("SELECT wait_event FROM pg_stat_activity WHERE pid = " + waiting), "SyncRep");
  EXPECT_EQ(watch.ask_one("SELECT count(*) FROM latchkey.runs"), "1") << "shown before the standby has it";
  standby_->start();
  const Result<ClaimReply> reply = told.get_future().get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  primary_.stop(PgStop::immediate);
  standby_->promote();
  EXPECT_TRUE(open(standby_->url())->find({}, std::get<Won>(*reply).run.id()).value()) << "what was told is lost";
}

// Without synchronous replication the last moments before a failover may be lost; docs/postgresql.md says so. Even then
// no fence is given twice, and nobody is an owner by what the lost server promised.
TEST_F(PostgresFailover, AsynchronousMayLoseTheLastMomentsButFencesRise) {
  auto store = open(both());
  const Won kept = std::get<Won>(Verbs(*store).claim(a_claim("kept")));
  PgClient(primary_.url())
      .wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()");
  standby_->stop(PgStop::fast);
  std::optional<Won> lost;
  for (int i = 0; i < 100; ++i) lost = std::get<Won>(Verbs(*store).claim(a_claim("lost" + std::to_string(i))));
  Engine engine(*store, clock_, {});
  const auto ask_engine = [&] {
    std::promise<ClaimReply> told;
    engine.claim(a_claim("done"), [&](Result<ClaimReply> reply) { told.set_value(reply.value()); });
    return told.get_future().get();
  };
  const Won done = std::get<Won>(ask_engine());
  ASSERT_TRUE(
      std::holds_alternative<Settled>(Verbs(*store).settle({{}, done.run.id(), done.fence, Complete{"r", {}}})));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(std::holds_alternative<Replay>(ask_engine()));
  ASSERT_EQ(engine.replays_from_memory(), 1u);
  primary_.stop(PgStop::immediate);
  standby_->start();
  standby_->promote();

  const Won next = std::get<Won>(Verbs(*store).claim(a_claim("next")));
  EXPECT_FALSE(store->find({}, lost->run.id()).value()) << "this standby had never heard of it";
  EXPECT_GT(next.fence, lost->fence);
  const ClaimReply reply = Verbs(*store).claim(a_claim("kept"));
  const auto* taken_over = std::get_if<Won>(&reply);
  ASSERT_TRUE(taken_over) << "what became of its owner is not known here: its lease is over";
  EXPECT_GT(taken_over->fence, lost->fence);
  EXPECT_EQ(code_of(Verbs(*store).settle({{}, kept.run.id(), kept.fence, Complete{"r", {}}})), Code::LEASE_LOST);
  EXPECT_TRUE(std::holds_alternative<Won>(ask_engine())) << "told from memory what is lost here";
}

// A user's own program may come to the new primary before any server does. It gets no fence from what the standby knew.
TEST_F(PostgresFailover, AProgramIsGivenNoFenceThatTheLostServerGave) {
  const auto visit = [&](const PgCluster& cluster) {
    const auto server = open(cluster.url());
    const std::string key = "visit to " + std::to_string(cluster.port());
    EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*server).claim(a_claim(key))));
  };
  visit(primary_);
  const auto begin = [](const PgCluster& cluster, const std::string& key) {
    return PgClient(cluster.url())
        .ask_one("SET app.current_tenant = 'default'; SELECT fence FROM latchkey.begin_run('f', '" + key + "')");
  };
  const std::string known = begin(primary_, "known");
  PgClient(primary_.url())
      .wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()");
  standby_->stop(PgStop::fast);
  std::string lost;
  // More than the sequence's own log is ahead of what was drawn.
  for (int i = 0; i < 100; ++i) lost = begin(primary_, "lost" + std::to_string(i));
  primary_.stop(PgStop::immediate);
  standby_->start();
  standby_->promote();

  EXPECT_EQ(PgClient(standby_->url()).ask_one("SELECT last_value < " + lost + " FROM latchkey.fences"), "t")
      << "the test did not test";
  EXPECT_THAT([&] { begin(*standby_, "next"); },
              testing::ThrowsMessage<std::runtime_error>(testing::StartsWith("LK503")));
  visit(*standby_);
  EXPECT_GT(std::stoll(begin(*standby_, "next")), std::stoll(lost));
  EXPECT_GT(std::stoll(lost), std::stoll(known));
}

}  // namespace
}  // namespace latchkey
