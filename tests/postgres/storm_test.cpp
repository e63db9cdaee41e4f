// Hundreds of broken connections under load from many callers of several stores: the replies match the database.
#include <thread>

#include "base/clock.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/postgres/pg_workload_log.hpp"

namespace latchkey {
namespace {

constexpr std::uint64_t kCuts = 300;
constexpr std::uint64_t kSeed = 20261116;
constexpr Duration kStorePatience = std::chrono::seconds{60};
// The timeout of a connection without a reply.
constexpr Duration kReplyMax = std::chrono::milliseconds{500};

class PostgresStorm : public PostgresStores {
 protected:
  // Every connection gets a fault: before or after one of its first commits, or at any byte.
  ConnectionFault draw() {
    constexpr FaultAt kWhere[] = {FaultAt::commit_request, FaultAt::commit_reply, FaultAt::flight_request,
                                  FaultAt::commit_reply,   FaultAt::byte_request, FaultAt::byte_reply};
    constexpr FaultHow kHow[] = {FaultHow::close, FaultHow::reset, FaultHow::late};
    ConnectionFault fault{.at = kWhere[random_.below(std::size(kWhere))],
                          .how = kHow[random_.below(std::size(kHow))],
                          .delay = std::chrono::milliseconds{random_.below(30)}};
    const bool counts_bytes = fault.at == FaultAt::byte_request || fault.at == FaultAt::byte_reply;
    fault.after = counts_bytes ? random_.below(20'000) : random_.below(4);
    return fault;
  }

  SeededRandom random_{kSeed};  // used by the proxy's thread only
};

TEST_F(PostgresStorm, RepliesMatchTheDatabase) {
  FaultProxy proxy(PgServer::instance().port());
  auto one = open(proxy.url(database()), {.patience = kStorePatience});
  auto two = open(proxy.url(database()), {.patience = kStorePatience});
  WorkloadLog workload({one.get(), two.get()}, kSeed);
  proxy.set_fault_source([this] { return draw(); });
  workload.run(8, [&] { return proxy.fired() >= kCuts; });
  proxy.set_fault_source({});
  proxy.cut_all();
  EXPECT_GT(workload.acknowledged(), kCuts);
  workload.check(*open(url()));
}

// One kind of fault at a time, at COMMITs only: before the server has received it, and after its reply.
struct Kind {
  const char* name;
  FaultHow how;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class PostgresCommitStorm : public PostgresStorm, public ::testing::WithParamInterface<Kind> {
 protected:
  static constexpr std::uint64_t kHits = 120, kEach = 40;
  // True if the store has resolved unknown commits in both ways: batch names that it has blocked (at < 0), and existing
  // names that it has updated unchanged.
  static constexpr const char* kHasResolved =
      "SELECT (SELECT count(*) FROM latchkey.batches WHERE at < 0) >= 10 AND "
      "(SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'latchkey.batches'::regclass) >= 10";

  // The faults are rare enough that calls do not reach their time limit. The delay of `slow` is up to twice the store's
  // timeout.
  ConnectionFault draw() {
    constexpr FaultAt kWhere[] = {FaultAt::commit_request, FaultAt::flight_request, FaultAt::commit_reply,
                                  FaultAt::commit_reply};
    const auto most = static_cast<std::uint64_t>(2 * kReplyMax.count());
    return {.at = kWhere[random_.below(std::size(kWhere))],
            .how = GetParam().how,
            .after = random_.below(6),
            .delay = std::chrono::milliseconds{GetParam().how == FaultHow::slow ? random_.below(most) : 0}};
  }
  std::uint64_t before() const { return fired(FaultAt::commit_request) + fired(FaultAt::flight_request); }
  std::uint64_t after() const { return fired(FaultAt::commit_reply); }
  std::uint64_t fired(FaultAt at) const { return proxy_.fired(at, GetParam().how); }

  FaultProxy proxy_{PgServer::instance().port()};
};
INSTANTIATE_TEST_SUITE_P(Of, PostgresCommitStorm,
                         ::testing::Values(Kind{"cut", FaultHow::close}, Kind{"reset", FaultHow::reset},
                                           Kind{"half_open", FaultHow::blackhole}, Kind{"slow", FaultHow::slow}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(PostgresCommitStorm, RepliesMatchTheDatabase) {
  std::vector<std::unique_ptr<PostgresStore>> stores;
  for (int i = 0; i < 3; ++i)
    stores.push_back(open(proxy_.url(database()), {.patience = kStorePatience, .reply_max = kReplyMax}));
  WorkloadLog workload({stores[0].get(), stores[1].get(), stores[2].get()}, kSeed);
  proxy_.set_fault_source([this] { return draw(); });
  // The test needs faults before and after COMMITs. The number of unknown commits depends on the machine, so the load
  // continues until the store has resolved some in both ways, or until there are too many faults.
  PgClient truth(url());
  {
    std::atomic<bool> enough{false};
    std::jthread callers([&] {
      workload.run(12, [&] { return enough.load(); });
      enough = true;
    });
    const auto have_fired = [this] { return before() + after() >= kHits && before() >= kEach && after() >= kEach; };
    const auto has_resolved = [&] { return truth.ask_one(kHasResolved) == "t" || before() + after() >= 10 * kHits; };
    while (!enough && !(have_fired() && has_resolved())) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    enough = true;
  }
  proxy_.set_fault_source({});
  proxy_.cut_all();
  stores.clear();
  EXPECT_EQ(proxy_.fired(), before() + after());
  EXPECT_GT(workload.acknowledged(), kHits);
  workload.check(*open(url()));
  EXPECT_EQ(truth.ask_one(kHasResolved), "t") << "too few unknown commits were resolved";
}

}  // namespace
}  // namespace latchkey
