// PostgreSQL stops replying: reads of the database wait, other requests do not, and the server still stops in time.
#include <future>
#include <sstream>

#include "api/service_fixture.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_server.hpp"
#include "support/raw_client.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Whether all bytes that were sent to or from that port have been read, by the kernel's table of connections.
bool is_all_read(std::uint16_t port) {
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // the column names
  while (std::getline(table, line)) {
    std::ranges::replace(line, ':', ' ');
    std::istringstream in(line);
    std::uint64_t number = 0, from = 0, from_port = 0, to = 0, to_port = 0, state = 0, unsent = 0, unread = 0;
    in >> std::hex >> number >> from >> from_port >> to >> to_port >> state >> unsent >> unread;
    constexpr std::uint64_t kEstablished = 1;
    if ((from_port == port || to_port == port) && state == kEstablished && unsent + unread > 0) return false;
  }
  return true;
}

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

TEST_F(PostgresSilentApi, WaitingReadsBlockNoServerThread) {
  const std::string id = caller().claim("k").at("/run/id");
  proxy_.blackhole_all();
  std::vector<std::future<Heard>> reads;
  for (const std::string& target :
       {"/v1/runs/" + id, std::string("/v1/keys?function=f&key=k"), std::string("/metrics"), std::string("/readyz")})
    reads.push_back(std::async(std::launch::async, [this, target] { return caller().get(target); }));
  // Each read has its own connection. One more connection is the store's, which polls for due runs.
  const Duration patience = clock_.elapsed() + 20s;
  while (proxy_.blackholed() < reads.size() + 1 && clock_.elapsed() < patience) {
    // Repeated calls reach every thread of the server.
    const Duration start = clock_.elapsed();
    EXPECT_EQ(caller().get("/healthz").status, 200);
    ASSERT_LT(clock_.elapsed() - start, 5s) << "a read blocks a thread of the server";
  }
  ASSERT_GT(proxy_.blackholed(), reads.size()) << "not all reads reached the database at once";
  for (auto& read : reads)
    EXPECT_NE(read.wait_for(0s), std::future_status::ready) << "a read ended before the database was unblocked";
  proxy_.cut_all();
  for (auto& read : reads) EXPECT_EQ(read.get().status, 200);
}

// Reads of one kind, many more than may run at once, all blocked for longer than a client would wait. One kind is a
// tenant's lists, the other the metrics: frequent scrapes of the metrics must not make the server unready.
struct SlowReads {
  const char* name;
  const char* target;
  bool is_tenants;
};
void PrintTo(const SlowReads& reads, std::ostream* out) { *out << reads.name; }

class PostgresSlowReads : public PostgresSilentApi, public ::testing::WithParamInterface<SlowReads> {};
INSTANTIATE_TEST_SUITE_P(Of, PostgresSlowReads,
                         ::testing::Values(SlowReads{"a_tenants_lists", "/v1/dead-letters", true},
                                           SlowReads{"the_metrics", "/metrics", false}),
                         [](const auto& reads) { return std::string(reads.param.name); });

TEST_P(PostgresSlowReads, DoNotDelayOtherReads) {
  Caller other(service_->url(), make_token("other"));
  const std::string token = GetParam().is_tenants ? make_token("slow") : token_;
  PgClient holder(url_);
  holder.execute("BEGIN; LOCK TABLE latchkey.dead_letters");
  std::vector<std::future<Heard>> slow;
  for (int i = 0; i < 20; ++i)
    slow.push_back(
        std::async(std::launch::async, [&] { return Caller(service_->url(), token).get(GetParam().target); }));
  PgClient(url_).wait_until(
      "SELECT count(*) = 3 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'");
  const Duration start = clock_.elapsed();
  EXPECT_EQ(other.get("/v1/runs").status, 200);
  EXPECT_EQ(caller().get("/v1/runs").status, 200) << "a list over all tenants";
  EXPECT_EQ(caller().get("/readyz").status, 200);
  EXPECT_LT(clock_.elapsed() - start, 5s);
  for (auto& read : slow)
    EXPECT_NE(read.wait_for(0s), std::future_status::ready) << "a read ended before the database was unblocked";
  holder.execute("ROLLBACK");
  for (auto& read : slow) EXPECT_EQ(read.get().status, 200);
}

// Reads are running, more reads are queued, and a write and a long poll wait.
TEST_F(PostgresSilentApi, StopTakesSecondsAndAnswersAllRequests) {
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
  ASSERT_TRUE(wait_until([&] { return caller().get("/metrics").body.contains("latchkey_waiting_requests 1"); }));
  proxy_.blackhole_all();
  send(1, "POST /v1/runs", R"({"function":"f","key":"other"})");
  for (std::size_t i = 2; i < clients.size(); ++i) send(i, "GET /v1/runs");
  ASSERT_TRUE(wait_until([&] { return is_all_read(service_->port()); })) << "the server did not read all requests";

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
  EXPECT_LT(stopped.get(), 12s) << "stopping takes 5 s, not the 15 s that a read may wait";
  EXPECT_GT(refused, 20) << "queued requests are rejected";
}

// After a failed write, only a successful write proves that the store works again.
TEST_F(PostgresSilentApi, ServerIsReadyOnlyAfterSuccessfulWrite) {
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
