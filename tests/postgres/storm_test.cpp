// Hundreds of broken connections under many callers of several servers: what they were told is what is so.
#include <thread>

#include "base/clock.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_ledger.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

constexpr std::uint64_t kCuts = 300;
constexpr std::uint64_t kSeed = 20261116;
constexpr Duration kStorePatience = std::chrono::seconds{60};
// One that is silent for longer is given up.
constexpr Duration kReplyMax = std::chrono::milliseconds{500};

class PostgresStorm : public PostgresStores {
 protected:
  // Every connection is doomed: at one of its first commits, before or after it took place, or at any byte.
  ConnectionFault draw() {
    constexpr FaultAt kWhere[] = {FaultAt::commit_asked,    FaultAt::commit_answered, FaultAt::flight_asked,
                                  FaultAt::commit_answered, FaultAt::byte_asked,      FaultAt::byte_answered};
    constexpr FaultHow kHow[] = {FaultHow::close, FaultHow::reset, FaultHow::late};
    ConnectionFault fault{.at = kWhere[random_.below(std::size(kWhere))],
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
  auto one = open(proxy.url(database()), {.patience = kStorePatience});
  auto two = open(proxy.url(database()), {.patience = kStorePatience});
  Ledger ledger({one.get(), two.get()}, kSeed);
  proxy.set_fates([this] { return draw(); });
  ledger.run(8, [&] { return proxy.fired() >= kCuts; });
  proxy.set_fates({});
  proxy.cut_all();
  EXPECT_GT(ledger.acknowledged(), kCuts);
  ledger.check(*open(url()));
}

// One kind at a time, at COMMITs only: before the server has it, and when it has answered.
struct Kind {
  const char* name;
  FaultHow how;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class PostgresCommitStorm : public PostgresStorm, public ::testing::WithParamInterface<Kind> {
 protected:
  static constexpr std::uint64_t kHits = 120, kEach = 40;
  // That it was not known what became of them, and found out by a write: names that can no more be kept, and names that
  // were found and written again as they were.
  static constexpr const char* kFoundOut =
      "SELECT (SELECT count(*) FROM latchkey.batches WHERE at < 0) >= 10 AND "
      "(SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'latchkey.batches'::regclass) >= 10";

  // Not so often that an answer takes all of a caller's patience. What is slow is so by little, or by more than the
  // store waits for.
  ConnectionFault draw() {
    constexpr FaultAt kWhere[] = {FaultAt::commit_asked, FaultAt::flight_asked, FaultAt::commit_answered,
                                  FaultAt::commit_answered};
    const auto most = static_cast<std::uint64_t>(2 * kReplyMax.count());
    return {.at = kWhere[random_.below(std::size(kWhere))],
            .how = GetParam().how,
            .after = random_.below(6),
            .delay = std::chrono::milliseconds{GetParam().how == FaultHow::slow ? random_.below(most) : 0}};
  }
  std::uint64_t before() const { return fired(FaultAt::commit_asked) + fired(FaultAt::flight_asked); }
  std::uint64_t after() const { return fired(FaultAt::commit_answered); }
  std::uint64_t fired(FaultAt at) const { return proxy_.fired(at, GetParam().how); }

  FaultProxy proxy_{PgServer::instance().port()};
};
INSTANTIATE_TEST_SUITE_P(Of, PostgresCommitStorm,
                         ::testing::Values(Kind{"cut", FaultHow::close}, Kind{"reset", FaultHow::reset},
                                           Kind{"half_open", FaultHow::swallow}, Kind{"slow", FaultHow::slow}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(PostgresCommitStorm, WhatWasToldIsSo) {
  std::vector<std::unique_ptr<PostgresStore>> stores;
  for (int i = 0; i < 3; ++i)
    stores.push_back(open(proxy_.url(database()), {.patience = kStorePatience, .reply_max = kReplyMax}));
  Ledger ledger({stores[0].get(), stores[1].get(), stores[2].get()}, kSeed);
  proxy_.set_fates([this] { return draw(); });
  // Of COMMITs that the server did not have, and of those that it had answered. How many of them leave it unknown what
  // became of them is the machine's doing: it goes on until some did, in all kinds of ways, or they never do.
  PgClient truth(url());
  {
    std::atomic<bool> enough{false};
    std::jthread callers([&] {
      ledger.run(12, [&] { return enough.load(); });
      enough = true;
    });
    const auto have_struck = [this] { return before() + after() >= kHits && before() >= kEach && after() >= kEach; };
    const auto are_found_out = [&] { return truth.ask_one(kFoundOut) == "t" || before() + after() >= 10 * kHits; };
    while (!enough && !(have_struck() && are_found_out())) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    enough = true;
  }
  proxy_.set_fates({});
  proxy_.cut_all();
  stores.clear();
  EXPECT_EQ(proxy_.fired(), before() + after());
  EXPECT_GT(ledger.acknowledged(), kHits);
  ledger.check(*open(url()));
  EXPECT_EQ(truth.ask_one(kFoundOut), "t") << "the test did not test";
}

}  // namespace
}  // namespace latchkey
