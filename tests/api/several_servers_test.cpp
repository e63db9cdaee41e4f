// Several servers on one PostgreSQL: each gives the same replies, and one claim wins among all.
#include <functional>
#include <future>
#include <latch>
#include <thread>

#include "api/service_fixture.hpp"
#include "support/postgres/pg_server.hpp"

namespace latchkey {
namespace {

class PostgresServers : public ::testing::Test {
 protected:
  PostgresServers() {
    for (const char* name : {"one", "two"}) {
      auto started = Service::start({.data_dir = folder_.file("data"), .listen = "127.0.0.1:0", .store = url_});
      EXPECT_TRUE(started) << name << ": " << to_string(started.error());
      services_.push_back(std::move(*started));
    }
    std::ifstream(services_[0]->admin_key_file()) >> token_;
    for (const auto& service : services_) callers_.push_back(std::make_unique<Caller>(service->url(), token_));
  }
  ~PostgresServers() override {
    callers_.clear();
    services_.clear();
    PgServer::instance().give_back(url_);
  }
  Caller& one() { return *callers_[0]; }
  Caller& two() { return *callers_[1]; }

  const Folder folder_;
  std::string token_;
  const std::string url_ = PgServer::instance().borrow_database();
  std::vector<std::unique_ptr<Service>> services_;
  std::vector<std::unique_ptr<Caller>> callers_;
};

// The other server learns of the change within moments, although no token call was made there.
TEST_F(PostgresServers, ATokenHoldsAtEveryServerUntilItIsRevokedAtOne) {
  const Heard made = one().post("/v1/tokens", R"({"role":"viewer","tenants":["default"]})");
  ASSERT_EQ(made.status, 201) << made.body;
  Caller viewer(services_[1]->url(), made.at("/token"));
  const auto becomes = [&](int status) {
    SystemClock clock;
    const Duration patience = clock.elapsed() + std::chrono::seconds{10};
    while (clock.elapsed() < patience)
      if (viewer.get("/v1/runs").status == status) return true;
    return false;
  };
  EXPECT_TRUE(becomes(200)) << "the token was created at the other server";
  ASSERT_EQ(one().call("DELETE", "/v1/tokens/" + made.at("/id")).status, 204);
  EXPECT_TRUE(becomes(401)) << "the token was revoked at the other server";
}

TEST_F(PostgresServers, RunsAreSharedBetweenServers) {
  const std::string input = R"(,"input":{"n":1})";
  const Heard won = one().claim("k", input);
  ASSERT_EQ(won.status, 201) << won.body;
  EXPECT_EQ(two().claim("k", input).at("/code"), "ALREADY_RUNNING");
  EXPECT_EQ(two().settle(won, "complete", R"(,"result":{"paid":true})").status, 200);
  const Heard again = one().claim("k", input);
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.at("/result/paid"), "true");
  EXPECT_EQ(two().get("/v1/runs/" + won.at("/run/id")).at("/status"), "completed");
}

// A long poll ends early when another server settles the run, or when a SQL transaction of a user does.
TEST_F(PostgresServers, LongPollEndsWhenSettledElsewhere) {
  using namespace std::chrono_literals;
  SystemClock clock;
  const std::vector<std::function<void(const Heard&)>> ways{
      [&](const Heard& won) { EXPECT_EQ(one().settle(won, "complete", R"(,"result":"done")").status, 200); },
      [&](const Heard& won) {
        PgClient session(url_);
        session.execute("SET app.current_tenant = 'default'");
        session.execute("SELECT latchkey.complete_run('" + won.at("/run/id") + "', " + won.at("/fence") +
                        R"(, '"done"'))");
      }};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const Heard won = one().claim("k" + std::to_string(way));
    ASSERT_EQ(won.status, 201) << won.body;
    auto waiting =
        std::async(std::launch::async, [&] { return two().get("/v1/runs/" + won.at("/run/id") + "?wait_ms=20000"); });
    EXPECT_EQ(waiting.wait_for(500ms), std::future_status::timeout) << "the run is still running";
    const Duration since = clock.elapsed();
    ways[way](won);
    const Heard heard = waiting.get();
    EXPECT_LT(clock.elapsed() - since, 5s) << way;
    EXPECT_EQ(heard.at("/status"), "completed") << way << ": " << heard.body;
    EXPECT_EQ(heard.at("/result"), "done") << way << ": " << heard.body;
  }
}

TEST_F(PostgresServers, ConcurrentClaimsHaveOneWinner) {
  constexpr int kRounds = 20, kThreads = 6;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> won{0}, busy{0};
    std::latch start(kThreads);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        Caller caller(services_[static_cast<std::size_t>(i) % 2]->url(), token_);
        start.arrive_and_wait();
        const int status = caller.claim("k" + std::to_string(round)).status;
        if (status == 201) ++won;
        if (status == 409) ++busy;
      });
    threads.clear();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(busy, kThreads - 1);
  }
}

TEST_F(PostgresServers, PasswordIsNotShown) {
  EXPECT_EQ(services_[0]->store_name(), url_);
  auto refused = Service::start({.data_dir = folder_.file("other"),
                                 .listen = "127.0.0.1:0",
                                 .store = "postgres://someone:secret@127.0.0.1:1/nowhere?connect_timeout=2"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::STORE_UNAVAILABLE);
  EXPECT_EQ(refused.error().detail.find("secret"), std::string::npos) << refused.error().detail;
}

}  // namespace
}  // namespace latchkey
