// Runs with equal outcomes share one row of `outcomes`. Reads and purges still handle each run separately.
#include <algorithm>
#include <future>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresOutcomes : public PostgresStores {
 protected:
  using Run = latchkey::Run;

  std::vector<Taken> take_new(int count) {
    std::vector<EnqueueRequest> jobs(static_cast<std::size_t>(count));
    for (EnqueueRequest& job : jobs) job.function = "f", job.window = 0ms;
    Verbs(*store_).enqueue_all(std::move(jobs));
    return Verbs(*store_).take(
        {.functions = {"f"}, .limit = static_cast<std::uint32_t>(count), .session = id_of(1), .lease = 1min});
  }
  void complete(const std::vector<Taken>& taken, const std::function<Bytes(std::size_t)>& result) {
    std::vector<SettleRequest> endings;
    for (std::size_t i = 0; i < taken.size(); ++i)
      endings.push_back({.id = taken[i].run.id(), .fence = taken[i].fence, .ending = Complete{result(i), {}}});
    for (const SettleReply& reply : Verbs(*store_).settle_all(std::move(endings)))
      ASSERT_TRUE(std::get<Settled>(reply).changed);
  }
  void complete(const std::vector<Taken>& taken) {
    complete(taken, [](std::size_t) { return ""; });
  }
  std::string ask(const std::string& sql) { return admin_.ask_one(sql); }
  // Each run of a range must exist, and ranges must not overlap.
  void expect_consistent() {
    EXPECT_EQ(ask("SELECT count(*) FROM latchkey.outcomes o, generate_series(o.lo, o.hi) x (seq) WHERE NOT EXISTS "
                  "(SELECT FROM latchkey.runs r WHERE r.seq = x.seq)"),
              "0");
    EXPECT_EQ(ask("SELECT count(*) FROM latchkey.outcomes a JOIN latchkey.outcomes b ON a.lo < b.lo AND a.hi >= b.lo"),
              "0");
  }
  std::vector<RunId> list_completed(std::uint32_t page) {
    std::vector<RunId> ids;
    ListQuery query{.status = Status::completed, .limit = page};
    do {
      const Page found = store_->list(query).value();
      for (const Run& run : found.runs) ids.push_back(run.id());
      query.cursor = found.next;
    } while (!query.cursor.empty());
    return ids;
  }

  std::unique_ptr<PostgresStore> store_ = open(url());
  PgClient admin_{url()};
};

std::vector<RunId> newest_first(const std::vector<Taken>& taken) {
  std::vector<RunId> ids;
  for (const Taken& one : taken) ids.push_back(one.run.id());
  std::ranges::sort(ids, std::ranges::greater{}, [](const RunId& id) { return uuid_counter(id); });
  return ids;
}

TEST_F(PostgresOutcomes, EqualOutcomesShareOneRow) {
  const auto taken = take_new(10);
  ASSERT_EQ(taken.size(), 10u);
  complete(taken);
  EXPECT_EQ(ask("SELECT count(*) || ' ' || sum(hi - lo + 1) FROM latchkey.outcomes"), "1 10");
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.job_runs WHERE status = 'completed'"), "10");
  for (const Taken& one : taken) {
    const Run run = store_->find({}, one.run.id()).value().value();
    EXPECT_EQ(run.status(), Status::completed);
    EXPECT_EQ(run.fence, one.fence);
    const SettleReply again = Verbs(*store_).settle({.id = run.id(), .fence = one.fence, .ending = Complete{}});
    EXPECT_FALSE(std::get<Settled>(again).changed);
    EXPECT_TRUE(std::holds_alternative<Error>(
        Verbs(*store_).settle({.id = run.id(), .fence = one.fence, .ending = Fail{.message = "no"}})));
  }
  expect_consistent();
}

TEST_F(PostgresOutcomes, DifferentResultsAreSeparateRows) {
  const auto taken = take_new(6);
  complete(taken, [](std::size_t i) { return i < 3 ? "one" : "two"; });
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.outcomes"), "2");
  for (std::size_t i = 0; i < taken.size(); ++i)
    EXPECT_EQ(store_->find({}, taken[i].run.id()).value().value().as<Completed>()->result, i < 3 ? "one" : "two");
}

TEST_F(PostgresOutcomes, PartsOfABlockShareNoRun) {
  const auto taken = take_new(9);
  std::vector<Taken> odd, even;
  for (std::size_t i = 0; i < taken.size(); ++i) (i % 2 == 1 ? odd : even).push_back(taken[i]);
  complete(odd);
  complete(even);
  expect_consistent();
  EXPECT_EQ(list_completed(4), newest_first(taken));
}

TEST_F(PostgresOutcomes, PurgeInSlicesLeavesFullPages) {
  const auto taken = take_new(50);
  complete(taken);
  auto left = newest_first(taken);
  const Retention at_once{.done = 0ms};
  for (bool more = true; more;) {
    const Swept swept = Verbs(*store_).purge(at_once, 7);
    left.resize(left.size() - swept.changed);
    EXPECT_EQ(list_completed(5), left);
    expect_consistent();
    more = swept.more;
  }
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.outcomes"), "0");
}

// Both stores purge slices of the same rows.
TEST_F(PostgresOutcomes, ConcurrentPurgesLeaveNothing) {
  const auto other = open(url());
  for (int round = 0; round < 10; ++round) {
    complete(take_new(60));
    const auto purge_all = [](Store& store) {
      while (Verbs(store).purge({.done = 0ms}, 7).more) {
      }
    };
    auto beside = std::async(std::launch::async, [&] { purge_all(*other); });
    purge_all(*store_);
    beside.get();
    // One store may have reached the end of the runs before the other released its locked slice.
    purge_all(*store_);
    purge_all(*store_);
    expect_consistent();
    ASSERT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
    ASSERT_EQ(ask("SELECT count(*) FROM latchkey.outcomes"), "0");
  }
}

// The commit of one slice is late, lost or without a reply, while another store purges from the same row: the other
// store must see the rest of that row. The late commit is repeated, because the store may terminate its backend first.
TEST_F(PostgresOutcomes, CutSliceLeavesTheRestOfItsRow) {
  FaultProxy proxy(PgServer::instance().port());
  const auto cut = open(proxy.url(database()), {.writers = 1});
  std::vector<ConnectionFault> faults(8, {FaultAt::commit_request, FaultHow::late, 0, 40ms});
  faults.push_back({FaultAt::commit_request, FaultHow::close});
  faults.push_back({FaultAt::commit_reply, FaultHow::close});
  for (const ConnectionFault& fault : faults) {
    complete(take_new(30));
    ASSERT_EQ(ask("SELECT count(*) FROM latchkey.outcomes"), "1");
    const std::string before = ask("SELECT last_value FROM latchkey.purged");
    const auto fired = proxy.fired();
    proxy.arm(fault);
    auto first = std::async(std::launch::async, [&] { return Verbs(*cut).purge({.done = 0ms}, 7).changed; });
    while (proxy.fired() == fired && first.wait_for(1ms) != std::future_status::ready) {
    }
    ASSERT_EQ(proxy.fired(), fired + 1) << "the fault did not occur";
    // The start of the next slice is a sequence, so it is visible before the commit.
    if (fault.how == FaultHow::late) admin_.wait_until("SELECT last_value <> " + before + " FROM latchkey.purged");
    Verbs(*store_).purge({.done = 0ms}, 7);
    first.get();
    expect_consistent();
    EXPECT_EQ(ask("SELECT sum(hi - lo + 1) FROM latchkey.outcomes"), ask("SELECT count(*) FROM latchkey.runs"));
    // The next round purges the slice that was cut.
    for (int round = 0; round < 2; ++round)
      while (Verbs(*store_).purge({.done = 0ms}, 7).more) {
      }
    ASSERT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
    ASSERT_EQ(ask("SELECT count(*) FROM latchkey.outcomes"), "0");
  }
}

}  // namespace
}  // namespace latchkey
