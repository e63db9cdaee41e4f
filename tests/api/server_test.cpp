// The server as a whole: concurrent callers, restarts, its lock and port, health, origins.
#include <sqlite3.h>
#include <sys/stat.h>

#include <latch>
#include <thread>

#include "api/service_fixture.hpp"
#include "store/sqlite/store_lock.hpp"
#include "support/postgres/pg_client.hpp"

namespace latchkey {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ApiServerTest : public ServiceTest {
 protected:
  static std::string count_embedded_commits(const std::string& store) {
    sqlite3* file = nullptr;
    EXPECT_EQ(sqlite3_open_v2(store.c_str(), &file, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    sqlite3_stmt* count = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(file, "SELECT batch FROM lk_state", -1, &count, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(count), SQLITE_ROW);
    const auto batch = sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(file);
    return std::to_string(batch);
  }
};

// These tests are about the SQLite file only.
class EmbeddedServerTest : public ServiceTest {};

TEST_F(EmbeddedServerTest, TheServerOwnsItsStore) {
  EXPECT_EQ(StoreLock::find_server(service_->store_name()), service_->url());
  const auto second = Service::start(settings_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::STORE_LOCKED);
  EXPECT_THAT(second.error().detail, HasSubstr(service_->url()));
  const std::string file = service_->store_name();
  service_->stop();
  EXPECT_EQ(StoreLock::find_server(file), std::nullopt);
}

// covers: B13
TEST_F(ApiServerTest, TenConcurrentClaimsHaveOneWinner) {
  std::atomic<int> winners{0}, busy{0};
  std::latch ready(10);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 10; ++i)
      threads.emplace_back([&] {
        Caller other = caller(admin_key_);
        ready.arrive_and_wait();
        const Heard heard = other.claim("one");
        winners += heard.status == 201;
        busy += heard.status == 409 && heard.at("/code") == "ALREADY_RUNNING" && heard.header("retry-after");
      });
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(busy, 9);
}

TEST_F(ApiServerTest, RestartPreservesRuns) {
  const Heard won = admin().claim("done");
  admin().settle(won, "complete", R"(,"result":{ "paid" : true })");
  const Heard open = admin().claim("open");
  EXPECT_EQ(admin().claim("done").status, 200);
  const std::string viewer = make_token("viewer", R"(["default"])");
  const std::string key = admin_key_;
  restart();
  EXPECT_EQ(admin_key_, key);
  EXPECT_THAT(admin().claim("done").body, HasSubstr("\"result\":{ \"paid\" : true }"));
  EXPECT_EQ(admin().claim("open").at("/code"), "ALREADY_RUNNING");
  EXPECT_EQ(admin().settle(open, "complete").status, 200);
  EXPECT_EQ(caller(viewer).get("/v1/runs/" + won.at("/run/id")).status, 200);
  EXPECT_EQ(admin().get("/v1/keys?function=f&key=done").at("/suppressed/counts/0/count"), "2");
}

TEST_F(ApiServerTest, TheServerOwnsItsPortAndSecrets) {
  ServeSettings other = settings_;
  other.data_dir = folder_.file("other");
  other.listen = "127.0.0.1:" + std::to_string(service_->port());
  EXPECT_EQ(Service::start(other).error().code, Code::LISTEN_FAILED);
  other.listen = "0.0.0.0:0";
  EXPECT_EQ(Service::start(other).error().code, Code::INVALID_ARGUMENT) << "the address is beyond loopback";
  other.listen = "127.0.0.1:0";
  other.data_dir = service_->admin_key_file();
  EXPECT_EQ(Service::start(other).error().code, Code::STORE_UNAVAILABLE) << "the data directory is not a folder";

  struct stat facts{};
  ASSERT_EQ(::stat(service_->admin_key_file().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(settings_.data_dir.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
}

TEST_F(ApiServerTest, HealthRoutesNeedNoToken) {
  Caller no_token = caller("");
  EXPECT_EQ(no_token.get("/healthz").status, 200);
  EXPECT_EQ(no_token.get("/readyz").status, 200);
  EXPECT_THAT(no_token.get("/openapi.json").body, StartsWith(R"({"openapi":"3.1)"));
  EXPECT_THAT(no_token.get("/errors/LEASE_LOST").body, StartsWith("LEASE_LOST: "));
  EXPECT_EQ(no_token.get("/errors/NONE").status, 404);
  admin().claim("k");
  admin().claim("k");
  const std::string metrics = no_token.get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("latchkey_claims_total{answer=\"won\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("latchkey_claims_total{answer=\"already_running\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("latchkey_http_responses_total{class=\"4xx\"} 2\n"));
}

TEST_F(ApiServerTest, ReadinessProbeNeedsNoCommit) {
  admin().claim("k");
  const auto commits = [&] {
    return is_on_postgres() ? PgClient(settings_.store).ask_one("SELECT count(*) FROM latchkey.batches")
                            : count_embedded_commits(service_->store_name());
  };
  const std::string before = commits();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(admin().get("/readyz").status, 200);
  EXPECT_EQ(commits(), before);
  admin().claim("other");
  EXPECT_NE(commits(), before) << "a claim does commit";
}

TEST_F(ApiServerTest, OnlyListedOriginsAreAllowed) {
  settings_.cors_origins = {"https://app.example"};
  restart();
  const std::vector<http::ClientHeader> preflight{{"Origin", "https://app.example"},
                                                  {"Access-Control-Request-Method", "POST"}};
  const Heard allowed = admin().call("OPTIONS", "/v1/runs", "", preflight);
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.header("access-control-allow-origin"), "https://app.example");
  const Heard listed = admin().call("GET", "/healthz", "", {{"Origin", "https://app.example"}});
  EXPECT_EQ(listed.header("access-control-allow-origin"), "https://app.example");
  const Heard other = admin().call("GET", "/healthz", "", {{"Origin", "https://evil.example"}});
  EXPECT_EQ(other.header("access-control-allow-origin"), std::nullopt);
}

}  // namespace
}  // namespace latchkey
