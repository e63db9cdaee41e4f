// A server whose PostgreSQL says nothing any more: reads wait for it, and nobody else does.
#include <future>

#include "integration/service_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/pg_client.hpp"
#include "support/pg_server.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

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
