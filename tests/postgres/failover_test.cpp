// PostgreSQL restarts, crashes or fails over under load. With synchronous replication no acknowledged change is lost,
// and no change is applied twice. The tests also show the possible loss with asynchronous replication.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "engine/engine.hpp"
#include "migrate/open_postgres.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_workload_log.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class PostgresOutages : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url, Duration reply_max = 15s) {
    auto opened = migrate::open_postgres({.url = url, .patience = 60s, .reply_max = reply_max}, clock_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  // Runs callers while `disturb` runs on this thread, which started the servers. `disturb` can wait for more replies
  // with its argument.
  void under_load(WorkloadLog& workload, auto disturb) {
    std::atomic<bool> enough{false};
    std::jthread callers([&] { workload.run(6, [&] { return enough.load(); }); });
    const auto answers = [&](std::uint64_t more) {
      const std::uint64_t until = workload.acknowledged() + more;
      EXPECT_TRUE(workload.wait_for_replies(until, 2 * kPatience)) << "callers got no replies";
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

TEST_P(PostgresRestarts, AcknowledgedChangesExistOnce) {
  PgCluster server;
  auto one = open(server.url()), two = open(server.url());
  WorkloadLog workload({one.get(), two.get()}, 11);
  under_load(workload, [&](auto answers) {
    for (int i = 0; i < 4; ++i) {
      answers(150);
      server.stop(GetParam());
      server.start();
    }
    answers(150);
  });
  workload.check(*open(server.url()));
}

class PostgresFailover : public PostgresOutages {
 protected:
  // Makes commits wait for the standby.
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
  // A store's backend that waits for the standby since a time after `since`.
  std::string waiting_backend(PgClient& watch, const std::string& since) {
    return watch.ask_one(
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = "
        "'client backend' AND query_start > '" +
        since + "' LIMIT 1");
  }
  // Sends a call whose commit waits for a stopped standby, and interrupts the waiting backend with the SQL function
  // `act`. The call must not get a reply before the standby has the commit. Then the standby is promoted.
  template <class Reply>
  Reply interrupt_waiting(const std::string& act, const std::function<std::future<Reply>()>& call) {
    PgClient watch(primary_.url());
    const std::string since = watch.ask_one("SELECT clock_timestamp()");
    standby_->stop(PgStop::immediate);
    auto answer = call();
    std::string waiting;
    EXPECT_TRUE(wait_until([&] { return !(waiting = waiting_backend(watch, since)).empty(); }))
        << "no backend waits for the standby";
    const std::string interrupted_at = watch.ask_one("SELECT clock_timestamp()");
    if (!waiting.empty()) watch.execute("SELECT " + act + "(" + waiting + ")");
    // The store must resolve the unknown commit, which waits for the standby, too.
    const auto is_answered = [&] { return answer.wait_for(0s) == std::future_status::ready; };
    EXPECT_TRUE(wait_until([&] { return is_answered() || !waiting_backend(watch, interrupted_at).empty(); }))
        << "the store does not resolve the unknown commit";
    EXPECT_FALSE(is_answered()) << "acknowledged before the standby has the commit";
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
      auto promise = std::make_shared<std::promise<ClaimReply>>();
      store->claim(a_claim("k"), [promise](Result<ClaimReply> answer) { promise->set_value(answer.value()); });
      return promise->get_future();
    });
    ASSERT_TRUE(std::holds_alternative<Won>(reply));
    auto after = open(standby_->url());
    EXPECT_TRUE(after->find({}, std::get<Won>(reply).run.id()).value()) << "an acknowledged claim is lost";
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
    const auto stored = open(standby_->url())->find_dead_letter({}, letter).value().value();
    EXPECT_EQ(stored.acknowledged_by, "ann") << "the acknowledgement is lost";
    EXPECT_EQ(stored.acknowledged_at, (*reply)->acknowledged_at);
  }

  PgCluster primary_;
  std::unique_ptr<PgCluster> standby_ = PgCluster::make_standby(primary_);
};

TEST_F(PostgresFailover, SynchronousChangesExistOnce) {
  replicate_synchronously();
  auto one = open(both()), two = open(both());
  WorkloadLog workload({one.get(), two.get()}, 12);
  under_load(workload, [&](auto answers) {
    answers(300);
    workload.allow_lost_leases();
    primary_.stop(PgStop::immediate);
    standby_->promote();
    answers(300);
  });
  workload.check(*open(standby_->url()));
}

TEST_F(PostgresFailover, StandbyListedFirstIsSkipped) {
  auto store = open("postgres://latchkey@127.0.0.1:" + std::to_string(standby_->port()) +
                    ",127.0.0.1:" + std::to_string(primary_.port()) + "/postgres?target_session_attrs=read-write");
  EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim())));
}

// After an interrupted wait for the standby, the server replies that it has committed, with a warning. The commit
// exists on this server, but may not exist on the standby.
TEST_F(PostgresFailover, CancelledSyncWaitOfClaimRetries) { interrupt_claim("pg_cancel_backend"); }
TEST_F(PostgresFailover, TerminatedSyncWaitOfClaimRetries) { interrupt_claim("pg_terminate_backend"); }
TEST_F(PostgresFailover, CancelledSyncWaitOfAckRetries) { interrupt_acknowledgement("pg_cancel_backend"); }
TEST_F(PostgresFailover, TerminatedSyncWaitOfAckRetries) { interrupt_acknowledgement("pg_terminate_backend"); }

// A connection times out while its commit waits for the standby. The store must not terminate that backend: the server
// would then make the commit visible, and the standby may be promoted without it.
TEST_F(PostgresFailover, CommitIsInvisibleUntilReplicated) {
  replicate_synchronously();
  auto store = open(primary_.url(), 1s);
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim("before"))));
  PgClient watch(primary_.url());
  const std::string since = watch.ask_one("SELECT clock_timestamp()");
  standby_->stop(PgStop::immediate);
  std::promise<Result<ClaimReply>> promise;
  store->claim(a_claim("k"), [&](Result<ClaimReply> answer) { promise.set_value(std::move(answer)); });
  std::string waiting;
  ASSERT_TRUE(wait_until([&] { return !(waiting = waiting_backend(watch, since)).empty(); }))
      << "no backend waits for the standby";
  // The store has timed out, and resolves the unknown commit on another connection.
  watch.wait_until(
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO latchkey.batches AS b%' OR (wait_event "
      "= "
      "'SyncRep' AND pid <> " +
      waiting + ")");
  EXPECT_EQ(watch.ask_one("SELECT wait_event FROM pg_stat_activity WHERE pid = " + waiting), "SyncRep");
  EXPECT_EQ(watch.ask_one("SELECT count(*) FROM latchkey.runs"), "1")
      << "the commit is visible before the standby has it";
  standby_->start();
  const Result<ClaimReply> reply = promise.get_future().get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  primary_.stop(PgStop::immediate);
  standby_->promote();
  EXPECT_TRUE(open(standby_->url())->find({}, std::get<Won>(*reply).run.id()).value())
      << "an acknowledged claim is lost";
}

// With asynchronous replication a failover can lose the last commits, as docs/postgresql.md states. Even then no fence
// is drawn twice, and leases from the lost server are not valid.
TEST_F(PostgresFailover, AsynchronousLossReusesNoFence) {
  auto store = open(both());
  const Won replicated = std::get<Won>(Verbs(*store).claim(a_claim("replicated")));
  PgClient(primary_.url())
      .wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()");
  standby_->stop(PgStop::fast);
  std::optional<Won> lost;
  for (int i = 0; i < 100; ++i) lost = std::get<Won>(Verbs(*store).claim(a_claim("lost" + std::to_string(i))));
  Engine engine(*store, clock_, {});
  const auto ask_engine = [&] {
    std::promise<ClaimReply> promise;
    engine.claim(a_claim("done"), [&](Result<ClaimReply> reply) { promise.set_value(reply.value()); });
    return promise.get_future().get();
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
  EXPECT_FALSE(store->find({}, lost->run.id()).value()) << "the standby has the claim that the test expects to be lost";
  EXPECT_GT(next.fence, lost->fence);
  const ClaimReply reply = Verbs(*store).claim(a_claim("replicated"));
  const auto* taken_over = std::get_if<Won>(&reply);
  ASSERT_TRUE(taken_over) << "the lease of the lost server did not expire";
  EXPECT_GT(taken_over->fence, lost->fence);
  EXPECT_EQ(code_of(Verbs(*store).settle({{}, replicated.run.id(), replicated.fence, Complete{"r", {}}})),
            Code::LEASE_LOST);
  EXPECT_TRUE(std::holds_alternative<Won>(ask_engine())) << "replayed an outcome that is lost";
}

// A user's program may connect to the new primary before any store does. It must not get a fence that the lost server
// has already drawn.
TEST_F(PostgresFailover, SqlClaimReusesNoFence) {
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
  // More fences than a sequence logs ahead (32).
  for (int i = 0; i < 100; ++i) lost = begin(primary_, "lost" + std::to_string(i));
  primary_.stop(PgStop::immediate);
  standby_->start();
  standby_->promote();

  EXPECT_EQ(PgClient(standby_->url()).ask_one("SELECT last_value < " + lost + " FROM latchkey.fences"), "t")
      << "the standby knows the last fence";
  EXPECT_THAT([&] { begin(*standby_, "next"); },
              testing::ThrowsMessage<std::runtime_error>(testing::StartsWith("LK503")));
  visit(*standby_);
  EXPECT_GT(std::stoll(begin(*standby_, "next")), std::stoll(lost));
  EXPECT_GT(std::stoll(lost), std::stoll(known));
}

}  // namespace
}  // namespace latchkey
