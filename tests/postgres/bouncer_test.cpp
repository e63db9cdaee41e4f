// Through PgBouncer in transaction mode: fewer server connections than lanes, another one for every transaction, and
// the same answers.
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_ledger.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresBouncer : public PostgresStores {
 protected:
  ~PostgresBouncer() override {
    // Its connections would keep the schema from being dropped.
    one_.reset();
    two_.reset();
  }

  PgBouncer bouncer_{PgServer::instance().port(), 3};
  std::unique_ptr<Store> one_ = open(bouncer_.url(database()), {.patience = 60s});
  std::unique_ptr<Store> two_ = open(bouncer_.url(database()), {.patience = 60s});
};

TEST_F(PostgresBouncer, TheSameAnswers) {
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

TEST_F(PostgresBouncer, ManyAtOnce) {
  Ledger ledger({one_.get(), two_.get()}, 13);
  ledger.run(8, [&] { return ledger.acknowledged() >= 1500; });
  EXPECT_EQ(ledger.refused(), 0u);
  ledger.check(*open(url()));
  // No more than the pool has, once those of the store that looked have ended.
  PgClient(url()).wait_until(
      "SELECT count(*) <= 3 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND "
      "backend_type = 'client backend'");
}

TEST_F(PostgresBouncer, APoolerThatRestartsLosesNothing) {
  Ledger ledger({one_.get(), two_.get()}, 14);
  std::atomic<int> restarts{0};
  {
    std::jthread callers([&] { ledger.run(6, [&] { return restarts == 3 && ledger.acknowledged() >= 1000; }); });
    for (std::uint64_t at : {100u, 200u, 300u}) {
      EXPECT_TRUE(ledger.wait_for_answers(at, 40s)) << "the callers are stuck";
      bouncer_.restart();
      ++restarts;
    }
  }
  ledger.check(*open(url()));
}

// The lane's connection goes on, the server behind it is another one, that has lost fences: none may be drawn there
// again.
TEST(PostgresBehindABouncer, FencesJumpBeforeThePromotedStandbyGivesAny) {
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
  EXPECT_GT(number(after), number(before) + 500'000'000) << "from a counter that may have lost what was drawn last";
  EXPECT_EQ((*store)->data_epoch(), 1u);
  EXPECT_EQ(PgClient(standby->url()).ask_one("SELECT count(*) FROM latchkey.runs"), "2");
}

}  // namespace
}  // namespace latchkey
