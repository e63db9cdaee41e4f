// `latchkey serve --store postgres://…` through a pooler in transaction mode, and with several hosts, one of which
// fails over to another.
#include <atomic>
#include <map>
#include <thread>

#include "cli/serve_postgres_fixture.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {
namespace {

class ServeAcross : public ServePostgres {
 protected:
  static std::string claim_of(const std::string& key) { return R"({"function":"f","key":")" + key + R"("})"; }
  std::string complete(const std::string& won, const std::string& result) const {
    return post("/v1/runs/" + member(won, "id") + "/complete",
                R"({"result":")" + result + R"(","fence":)" + member(won, "fence") + "}");
  }
  // Claimed and settled; the run's id.
  std::string settle(const std::string& key) const {
    const std::string won = post("/v1/runs", claim_of(key));
    EXPECT_THAT(won, HasSubstr("201 Created")) << key;
    EXPECT_THAT(complete(won, "of " + key), HasSubstr("200 OK")) << key;
    return member(won, "id");
  }
  // A repeat gets the stored result of that settlement.
  void expect_settled(const std::string& key, const std::string& id) const {
    EXPECT_THAT(post("/v1/runs", claim_of(key)),
                AllOf(HasSubstr("200 OK"), HasSubstr(id), HasSubstr(R"("result":"of )" + key + "\"")));
  }
};

TEST_F(ServeAcross, PoolerInTransactionModeIsSupported) {
  constexpr int kPool = 2, kCallers = 8, kRounds = 10;
  PgBouncer bouncer(PgServer::instance().port(), kPool);
  auto one = serve(bouncer.url(name()));
  const std::uint16_t port_of_one = port_;
  std::vector<std::map<std::string, std::string>> settled(kCallers);
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCallers; ++i)
      callers.emplace_back([&, i] {
        for (int round = 0; round < kRounds; ++round) {
          const std::string key = std::to_string(i) + ":" + std::to_string(round);
          settled[static_cast<std::size_t>(i)][key] = settle(key);
        }
      });
  }
  EXPECT_EQ(call(run("a", "echo once; echo x >> " + file("log"))).out, "once\n");
  EXPECT_EQ(call(run("a", "echo twice", {"--quiet"})).out, "once\n");
  // The server has more connections to the pooler than the pooler has to PostgreSQL.
  EXPECT_GT(PgClient(bouncer.url("pgbouncer")).ask("SHOW CLIENTS").size(), kPool + 1u);
  EXPECT_EQ(PgClient(database_).ask_one("SELECT count(*) <= 2 FROM pg_stat_activity WHERE datname = "
                                        "current_database() AND backend_type = 'client backend' AND pid <> "
                                        "pg_backend_pid()"),
            "t");
  const std::string won = post("/v1/runs", claim_of("k"));
  ASSERT_THAT(won, HasSubstr("201 Created"));

  // A second server on the same pooler; both reconnect after the pooler has restarted.
  auto two = serve(bouncer.url(name()));
  EXPECT_NE(port_, port_of_one);
  EXPECT_THAT(post("/v1/runs", claim_of("k")), AllOf(HasSubstr("409 "), HasSubstr("ALREADY_RUNNING")));
  bouncer.restart();
  EXPECT_THAT(complete(won, "of k"), HasSubstr("200 OK"));
  for (const std::uint16_t port : {port_of_one, port_}) {
    port_ = port;
    expect_settled("k", member(won, "id"));
    for (const auto& some : settled)
      for (const auto& [key, id] : some) expect_settled(key, id);
  }
  EXPECT_EQ(call(run("a", "echo twice", {"--quiet"})).out, "once\n");
  EXPECT_EQ(read("log"), "x\n");
  EXPECT_EQ(PgClient(database_).ask_one("SELECT count(*) FROM latchkey.runs"), std::to_string(kCallers * kRounds + 2));
  stop(*one);
  stop(*two);
}

TEST_F(ServeAcross, HostThatIsDownIsSkipped) {
  const ReservedPort down;
  auto server = serve(url("latchkey", down.host() + "," + host(), name()) + "?target_session_attrs=read-write");
  expect_settled("k", settle("k"));
  stop(*server);
}

// With synchronous replication. The URL names the standby first: the server skips it until it is the primary.
// covers: X3
TEST_F(ServeAcross, PromotedStandbyHasAllAcknowledgedRuns) {
  PgCluster primary;
  const auto standby = PgCluster::make_standby(primary);
  primary.stop(PgStop::fast);
  primary.start({"synchronous_standby_names=standby", "synchronous_commit=on"});
  PgClient(primary.url()).wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
  auto server = serve("postgres://latchkey@127.0.0.1:" + std::to_string(standby->port()) + ",127.0.0.1:" +
                      std::to_string(primary.port()) + "/postgres?target_session_attrs=read-write&connect_timeout=5");

  const std::string open = post("/v1/runs", claim_of("open"));
  ASSERT_THAT(open, HasSubstr("201 Created"));
  // Four callers settle key after key and record each acknowledged run, before and after the failover.
  std::vector<std::map<std::string, std::string>> settled(4);
  std::atomic<int> answered{0};
  const auto wait_for = [&](int enough) {
    for (int seen = answered; seen < enough; seen = answered) answered.wait(seen);
  };
  {
    std::atomic<bool> enough{false};
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < settled.size(); ++i)
      callers.emplace_back([&, i] {
        for (int round = 0; !enough; ++round) {
          const std::string key = std::to_string(i) + ":" + std::to_string(round);
          // The settlement that was in flight when the primary stopped may get LEASE_LOST.
          const std::string won = post("/v1/runs", claim_of(key));
          EXPECT_THAT(won, HasSubstr("201 Created")) << key;
          const std::string settlement = complete(won, "of " + key);
          if (settlement.find("LEASE_LOST") == settlement.npos) {
            EXPECT_THAT(settlement, HasSubstr("200 OK")) << key;
            settled[i][key] = member(won, "id");
          }
          ++answered;
          answered.notify_all();
        }
      });
    wait_for(60);
    primary.stop(PgStop::immediate);
    standby->promote();
    wait_for(answered + 60);
    enough = true;
  }
  for (const auto& some : settled)
    for (const auto& [key, id] : some) expect_settled(key, id);
  // The leases of the lost primary have expired, and the next owner has a higher fence.
  const std::string taken_over = post("/v1/runs", claim_of("open"));
  ASSERT_THAT(taken_over, HasSubstr("201 Created"));
  EXPECT_EQ(member(taken_over, "id"), member(open, "id"));
  EXPECT_GT(std::stoll(member(taken_over, "fence")), std::stoll(member(open, "fence")));
  EXPECT_THAT(complete(open, "too late"), HasSubstr("LEASE_LOST"));
  EXPECT_THAT(complete(taken_over, "of open"), HasSubstr("200 OK"));
  expect_settled("open", member(open, "id"));
  EXPECT_EQ(PgClient(standby->url()).ask_one("SELECT count(*) FROM latchkey.runs"), std::to_string(answered + 1));
  stop(*server);
}

}  // namespace
}  // namespace latchkey
