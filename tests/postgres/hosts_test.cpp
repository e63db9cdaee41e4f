// Connection strings with several hosts: one that does not answer, however it does that, keeps nobody from the others.
#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {
namespace {

// Before a store that waits for it is closed.
struct Healed {
  FaultProxy& proxy;
  ~Healed() {
    proxy.set_fates({});
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

TEST_F(PostgresHosts, OneThatRefusesIsPassedOver) {
  const ReservedPort closed;
  expect_use(after_host(closed.host()));
}

TEST_F(PostgresHosts, OneThatHangsUpIsPassedOver) {
  FaultProxy proxy(PgServer::instance().port());
  proxy.set_fates([] { return ConnectionFault{FaultAt::byte_asked, FaultHow::reset}; });
  expect_use(after_host("127.0.0.1:" + std::to_string(proxy.port())));
  EXPECT_GT(proxy.fired(), 0u);
}

// It accepts, and says nothing: libpq heeds connect_timeout only where it does the waiting itself.
TEST_F(PostgresHosts, OneThatIsSilentIsPassedOver) {
  FaultProxy proxy(PgServer::instance().port());
  proxy.set_fates([] { return ConnectionFault{FaultAt::byte_asked, FaultHow::swallow}; });
  {
    auto store = open(after_host("127.0.0.1:" + std::to_string(proxy.port())), {.writers = 1});
    const Healed healed{proxy};
    auto reply = await_result<ClaimReply>([&](auto done) { store->claim(a_claim(), std::move(done)); });
    EXPECT_TRUE(reply && std::holds_alternative<Won>(*reply));
  }
  EXPECT_GT(proxy.fired(), 0u);
}

}  // namespace
}  // namespace latchkey
