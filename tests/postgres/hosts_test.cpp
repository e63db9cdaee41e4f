// Connection strings with several hosts: the store skips a host that refuses, resets or does not respond.
#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {
namespace {

// Repairs the proxy before the store is closed, so that the store does not wait for it.
struct ProxyRepair {
  FaultProxy& proxy;
  ~ProxyRepair() {
    proxy.set_fault_source({});
    proxy.cut_all();
  }
};

class PostgresHosts : public PostgresStores {
 protected:
  std::string after_host(const std::string& host) const {
    return "postgres://latchkey@" + host + ",127.0.0.1:" + std::to_string(PgServer::instance().port()) + "/" +
           database() + "?sslmode=disable&gssencmode=disable&connect_timeout=2&target_session_attrs=read-write";
  }
  void expect_use(const std::string& url) {
    auto store = open(url, {.writers = 2});
    const Won won = std::get<Won>(Verbs(*store).claim(a_claim()));
    EXPECT_TRUE(std::get<Settled>(Verbs(*store).settle({{}, won.run.id(), won.fence, Complete{"r", {}}})).changed);
  }
};

TEST_F(PostgresHosts, RefusingHostIsSkipped) {
  const ReservedPort closed;
  expect_use(after_host(closed.host()));
}

TEST_F(PostgresHosts, ResettingHostIsSkipped) {
  FaultProxy proxy(PgServer::instance().port());
  proxy.set_fault_source([] { return ConnectionFault{FaultAt::byte_request, FaultHow::reset}; });
  expect_use(after_host("127.0.0.1:" + std::to_string(proxy.port())));
  EXPECT_GT(proxy.fired(), 0u);
}

// The host accepts and sends nothing. libpq applies connect_timeout only to blocking connects, which the store does not
// use.
TEST_F(PostgresHosts, SilentHostIsSkipped) {
  FaultProxy proxy(PgServer::instance().port());
  proxy.set_fault_source([] { return ConnectionFault{FaultAt::byte_request, FaultHow::blackhole}; });
  {
    auto store = open(after_host("127.0.0.1:" + std::to_string(proxy.port())), {.writers = 1});
    const ProxyRepair repair{proxy};
    auto reply = await_result<ClaimReply>([&](auto done) { store->claim(a_claim(), std::move(done)); });
    EXPECT_TRUE(reply && std::holds_alternative<Won>(*reply));
  }
  EXPECT_GT(proxy.fired(), 0u);
}

}  // namespace
}  // namespace latchkey
