// A slow or failing name server while the store reconnects: writers with a connection continue.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace {

// The name for which getaddrinfo() below has special replies.
constexpr const char* kName = "db.latchkey.test";
std::atomic<int> delay_ms{0}, problem{0}, lookups{0};

}  // namespace

// Replaces the C library's function, for this program and libpq.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* wish, addrinfo** found) {
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!name || std::strcmp(name, kName) != 0) return real(name, service, wish, found);
  ++lookups;
  lookups.notify_all();
  std::this_thread::sleep_for(std::chrono::milliseconds{delay_ms});
  return problem != 0 ? problem.load() : real("127.0.0.1", service, wish, found);
}

namespace latchkey {
namespace {

class PostgresNameLookup : public PostgresStores {
 protected:
  ~PostgresNameLookup() override { delay_ms = 0, problem = 0; }

  std::string url_by_name() const {
    std::string text = proxy_.url(database());
    const std::string address = "127.0.0.1";
    return text.replace(text.find(address), address.size(), kName);
  }
  std::future<Result<ClaimReply>> ask(const std::string& key) {
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(a_claim(key), [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  // Makes two writers open their connections.
  void use_both() {
    for (int i = 0; proxy_.connections() < connections_before_ + 2 && i < 1'000; ++i) {
      auto one = ask("first" + std::to_string(i)), two = ask("second" + std::to_string(i));
      ASSERT_TRUE(one.get() && two.get());
    }
  }
  // Cuts the connection of the next commit.
  std::future<Result<ClaimReply>> cut() {
    proxy_.arm({FaultAt::commit_request, FaultHow::close});
    const int before = lookups;
    auto reply = ask("cut");
    lookups.wait(before);
    return reply;
  }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<PostgresStore> store_ = open(url_by_name(), {.writers = 2, .patience = 30s});
  const std::uint64_t connections_before_ = proxy_.connections();
};

TEST_F(PostgresNameLookup, SlowLookupDelaysNoOtherWriter) {
  EXPECT_GT(lookups, 0) << "the store did not look up the name";
  use_both();
  delay_ms = 3'000;
  const Duration since = clock_.elapsed();
  auto cut_off = cut();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ask(std::to_string(i)).get());
  EXPECT_LT(clock_.elapsed() - since, 2s);
  EXPECT_EQ(cut_off.wait_for(0ms), std::future_status::timeout) << "the lookup was not slow";
  EXPECT_TRUE(cut_off.get()) << "it fails although the lookup succeeds";
}

TEST_F(PostgresNameLookup, FailedLookupIsRetried) {
  use_both();
  problem = EAI_AGAIN;
  auto cut_off = cut();
  for (int times = 0; times < 3; ++times) lookups.wait(lookups);
  problem = 0;
  EXPECT_TRUE(cut_off.get());
}

TEST_F(PostgresNameLookup, CloseDoesNotWaitForLookup) {
  use_both();
  delay_ms = 20'000;
  auto cut_off = cut();
  const Duration since = clock_.elapsed();
  store_.reset();
  EXPECT_LT(clock_.elapsed() - since, 15s);
  EXPECT_FALSE(cut_off.get()) << "the commit's result is unknown";
}

}  // namespace
}  // namespace latchkey
