// Stores that connect through PgBouncer in transaction mode, with fewer server connections than writers: each
// transaction may use another server connection, and the replies are the same.
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/postgres/pg_workload_log.hpp"

namespace latchkey {
namespace {

class PostgresBouncer : public PostgresStores {
 protected:
  ~PostgresBouncer() override {
    // Open connections of the pooler would block DROP SCHEMA.
    one_.reset();
    two_.reset();
  }

  PgBouncer bouncer_{PgServer::instance().port(), 3};
  std::unique_ptr<Store> one_ = open(bouncer_.url(database()), {.patience = 60s});
  std::unique_ptr<Store> two_ = open(bouncer_.url(database()), {.patience = 60s});
};

TEST_F(PostgresBouncer, RepliesAreTheSame) {
  Verbs one(*one_), two(*two_);
  const Won won = std::get<Won>(one.claim(a_claim()));
  EXPECT_TRUE(std::holds_alternative<Busy>(two.claim(a_claim())));
  EXPECT_TRUE(std::get<Settled>(two.settle({{}, won.run.id(), won.fence, Complete{"r", {}}})).changed);
  EXPECT_EQ(std::get<Replay>(one.claim(a_claim())).run.as<Completed>()->result, "r");
  const auto job = std::get<Enqueued>(one.enqueue({.function = "f", .input = "i"}));
  const auto taken = two.take({.functions = {"f"}, .limit = 5, .session = id_of(5)});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].run.id(), job.run.id());
  EXPECT_TRUE(std::get<Settled>(one.settle({{}, job.run.id(), taken[0].fence, permanent()})).dead_letter);
  EXPECT_EQ(two_->list_dead_letters({}).value().entries.size(), 1u);
  EXPECT_EQ(two_->list({}).value().runs.size(), 2u);
}

TEST_F(PostgresBouncer, ConcurrentCallersStayWithinPool) {
  WorkloadLog workload({one_.get(), two_.get()}, 13);
  workload.run(8, [&] { return workload.acknowledged() >= 1500; });
  EXPECT_EQ(workload.rejected(), 0u);
  workload.check(*open(url()));
  // After the check's own store has closed, at most the pool's connections are open.
  PgClient(url()).wait_until(
      "SELECT count(*) <= 3 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND "
      "backend_type = 'client backend'");
}

TEST_F(PostgresBouncer, RestartLosesNothing) {
  WorkloadLog workload({one_.get(), two_.get()}, 14);
  std::atomic<int> restarts{0};
  {
    std::jthread callers([&] { workload.run(6, [&] { return restarts == 3 && workload.acknowledged() >= 1000; }); });
    for (std::uint64_t at : {100u, 200u, 300u}) {
      EXPECT_TRUE(workload.wait_for_replies(at, 40s)) << "callers got no replies";
      bouncer_.restart();
      ++restarts;
    }
  }
  workload.check(*open(url()));
}

// After a failover behind the pooler, the writer's connection stays open. The new server may have lost the last fences,
// so the store must not draw them again.
TEST(PostgresBouncerFailover, FencesJumpOnPromotion) {
  PgCluster primary;
  SystemClock clock;
  SystemRandom random;
  const auto standby = PgCluster::make_standby(primary);
  PgBouncer bouncer(primary.port(), 5);
  auto store = migrate::open_postgres({.url = bouncer.url("postgres"), .writers = 1, .patience = 60s}, clock, random);
  ASSERT_TRUE(store);
  const Won before = std::get<Won>(Verbs(**store).claim(a_claim("before")));
  PgClient(standby->url()).wait_until("SELECT count(*) = 1 FROM latchkey.runs");
  standby->promote();
  bouncer.point_at(standby->port());
  const Won after = std::get<Won>(Verbs(**store).claim(a_claim("after")));
  const auto number = [](const Won& won) { return static_cast<std::uint64_t>(won.fence); };
  EXPECT_GT(number(after), number(before) + 500'000'000) << "the standby's sequence may have lost the last fences";
  EXPECT_EQ((*store)->data_epoch(), 1u);
  EXPECT_EQ(PgClient(standby->url()).ask_one("SELECT count(*) FROM latchkey.runs"), "2");
}

}  // namespace
}  // namespace latchkey
