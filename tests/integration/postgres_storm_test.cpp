// Hundreds of broken connections, anywhere, under many callers of two servers: what they were told is what is so.
#include "base/clock.hpp"
#include "integration/pg_ledger.hpp"
#include "integration/pg_stores.hpp"
#include "support/fault_proxy.hpp"

namespace latchkey {
namespace {

constexpr std::uint64_t kCuts = 300;
constexpr std::uint64_t kSeed = 20261116;

class PostgresStorm : public PostgresStores {
 protected:
  // Every connection is doomed: at one of its first commits, before or after it took place, or at any byte.
  Fault draw() {
    constexpr FaultAt kWhere[] = {FaultAt::commit_asked,    FaultAt::commit_answered, FaultAt::flight_asked,
                                  FaultAt::commit_answered, FaultAt::byte_asked,      FaultAt::byte_answered};
    constexpr FaultHow kHow[] = {FaultHow::close, FaultHow::reset, FaultHow::late};
    Fault fault{.at = kWhere[random_.below(std::size(kWhere))],
                .how = kHow[random_.below(std::size(kHow))],
                .delay = std::chrono::milliseconds{random_.below(30)}};
    const bool counts_bytes = fault.at == FaultAt::byte_asked || fault.at == FaultAt::byte_answered;
    fault.after = counts_bytes ? random_.below(20'000) : random_.below(4);
    return fault;
  }

  SeededRandom random_{kSeed};  // of the proxy's thread
};

TEST_F(PostgresStorm, WhatWasToldIsSo) {
  FaultProxy proxy(PgServer::instance().port());
  auto one = open(proxy.url(database()), {.patience = std::chrono::seconds{60}});
  auto two = open(proxy.url(database()), {.patience = std::chrono::seconds{60}});
  Ledger ledger({one.get(), two.get()}, kSeed);
  proxy.set_fates([this] { return draw(); });
  const Duration until = clock_.elapsed() + std::chrono::seconds{60};
  ledger.run(8, [&] { return proxy.fired() >= kCuts || clock_.elapsed() > until; });
  proxy.set_fates({});
  proxy.cut_all();
  EXPECT_GE(proxy.fired(), kCuts);
  EXPECT_GT(ledger.acknowledged(), kCuts);
  ledger.check(*open(url()));
}

}  // namespace
}  // namespace latchkey
