// A server whose PostgreSQL says nothing any more: reads wait for it, and nobody else does; nor does who stops it.
#include <future>

#include "integration/raw_client.hpp"
#include "integration/service_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/pg_client.hpp"
#include "support/pg_server.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class PostgresSilentApi : public ::testing::Test {
 protected:
  PostgresSilentApi() {
    const std::string database = url_.substr(url_.rfind('/') + 1);
    auto started =
        Service::start({.data_dir = folder_.file("data"), .listen = "127.0.0.1:0", .store = proxy_.url(database)});
    EXPECT_TRUE(started) << to_string(started.error());
    service_ = std::move(*started);
    std::ifstream(service_->admin_key_file()) >> token_;
  }
  ~PostgresSilentApi() override {
    proxy_.cut_all();
    service_.reset();
    PgServer::instance().give_back(url_);
  }
  Caller caller() { return Caller(service_->url(), token_); }
  std::string make_token(const std::string& tenant) {
    return caller().post("/v1/tokens", R"({"role":"viewer","tenants":[")" + tenant + "\"]}").at("/token");
  }

  const Folder folder_;
  SystemClock clock_;
  std::string token_;
  const std::string url_ = PgServer::instance().borrow_database();
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Service> service_;
};

TEST_F(PostgresSilentApi, ReadsHoldUpNoThreadOfTheServer) {
  const std::string id = caller().claim("k").at("/run/id");
  proxy_.hush_all();
  std::vector<std::future<Heard>> reads;
  for (const std::string& target :
       {"/v1/runs/" + id, std::string("/v1/keys?function=f&key=k"), std::string("/metrics"), std::string("/readyz")})
    reads.push_back(std::async(std::launch::async, [this, target] { return caller().get(target); }));
  // Each on a connection of its own, and one on which the store looks for what is due.
  const Duration patience = clock_.elapsed() + 20s;
  while (proxy_.unheard() < reads.size() + 1 && clock_.elapsed() < patience) {
    // Whichever thread has it.
    const Duration start = clock_.elapsed();
    EXPECT_EQ(caller().get("/healthz").status, 200);
    ASSERT_LT(clock_.elapsed() - start, 5s) << "a read holds up a thread of the server";
  }
  ASSERT_GT(proxy_.unheard(), reads.size()) << "not all of the reads were asked for at once";
  for (auto& read : reads) EXPECT_NE(read.wait_for(0s), std::future_status::ready) << "the test did not test";
  proxy_.cut_all();
  for (auto& read : reads) EXPECT_EQ(read.get().status, 200);
}

// All that it asks for waits, for longer than the other's patience.
TEST_F(PostgresSilentApi, ATenantsSlowListsHoldUpNoOther) {
  Caller other(service_->url(), make_token("other"));
  const std::string token = make_token("slow");
  PgClient holder(url_);
  holder.execute("BEGIN; LOCK TABLE latchkey.dead_letters");
  std::vector<std::future<Heard>> slow;
  for (int i = 0; i < 20; ++i)
    slow.push_back(
        std::async(std::launch::async, [&] { return Caller(service_->url(), token).get("/v1/dead-letters"); }));
  PgClient(url_).wait_until(
      "SELECT count(*) = 4 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'");
  const Duration start = clock_.elapsed();
  EXPECT_EQ(other.get("/v1/runs").status, 200);
  EXPECT_EQ(caller().get("/v1/runs").status, 200) << "for all tenants";
  EXPECT_EQ(caller().get("/readyz").status, 200);
  EXPECT_LT(clock_.elapsed() - start, 5s);
  for (auto& list : slow) EXPECT_NE(list.wait_for(0s), std::future_status::ready) << "the test did not test";
  holder.execute("ROLLBACK");
  for (auto& list : slow) EXPECT_EQ(list.get().status, 200);
}

// Whoever looks at the metrics again and again must not have it taken out of service.
TEST_F(PostgresSilentApi, SlowMetricsHoldUpNoReadiness) {
  PgClient holder(url_);
  holder.execute("BEGIN; LOCK TABLE latchkey.dead_letters");
  std::vector<std::future<Heard>> slow;
  for (int i = 0; i < 20; ++i) slow.push_back(std::async(std::launch::async, [&] { return caller().get("/metrics"); }));
  PgClient(url_).wait_until(
      "SELECT count(*) = 4 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'");
  const Duration start = clock_.elapsed();
  EXPECT_EQ(caller().get("/readyz").status, 200);
  EXPECT_LT(clock_.elapsed() - start, 5s);
  for (auto& one : slow) EXPECT_NE(one.wait_for(0s), std::future_status::ready) << "the test did not test";
  holder.execute("ROLLBACK");
  for (auto& one : slow) EXPECT_EQ(one.get().status, 200);
}

// With reads under way and others behind them, a write, and somebody who waits for a run.
TEST_F(PostgresSilentApi, StoppingTakesSecondsAndEverybodyIsAnswered) {
  const std::string id = caller().claim("k").at("/run/id");
  std::vector<std::unique_ptr<latchkey::testing::RawClient>> clients;
  for (int i = 0; i < 42; ++i) {
    clients.push_back(std::make_unique<latchkey::testing::RawClient>(service_->port()));
    clients.back()->send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_THAT(clients.back()->read_response(), HasSubstr("200 OK"));
  }
  const auto send = [&](std::size_t client, const std::string& what, const std::string& body = "") {
    clients[client]->send(what + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token_ +
                          "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                          "\r\n\r\n" + body);
  };
  send(0, "GET /v1/runs/" + id + "?wait_ms=60000");
  while (caller().get("/metrics").body.find("latchkey_waiting_requests 1") == std::string::npos) {
  }
  proxy_.hush_all();
  send(1, "POST /v1/runs", R"({"function":"f","key":"other"})");
  for (std::size_t i = 2; i < clients.size(); ++i) send(i, "GET /v1/runs");
  // Each of the server's threads takes what came first, first.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(caller().get("/healthz").status, 200);

  const Duration start = clock_.elapsed();
  auto stopped = std::async(std::launch::async, [&] {
    service_->stop();
    return clock_.elapsed() - start;
  });
  int refused = 0;
  for (const auto& client : clients) {
    const std::string response = client->read_response();
    EXPECT_THAT(response, HasSubstr("503 "));
    refused += response.find("SHUTTING_DOWN") != response.npos;
    client->close();
  }
  EXPECT_LT(stopped.get(), 8s);
  EXPECT_GT(refused, 20) << "what had not begun";
}

// After a failure only a write tells whether it is over.
TEST_F(PostgresSilentApi, AServerIsNotReadyBeforeItCanWriteAgain) {
  PgClient admin(url_);
  admin.execute("ALTER TABLE latchkey.batches ADD CONSTRAINT refuses CHECK (at < 0) NOT VALID");
  EXPECT_EQ(caller().claim("k").at("/code"), "STORE_UNAVAILABLE");
  EXPECT_EQ(caller().get("/readyz").status, 503);
  admin.execute("ALTER TABLE latchkey.batches DROP CONSTRAINT refuses");
  EXPECT_EQ(caller().get("/readyz").status, 200);
  EXPECT_EQ(caller().claim("k").status, 201);
}

}  // namespace
}  // namespace latchkey
