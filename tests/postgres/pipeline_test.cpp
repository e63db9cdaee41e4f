// How the store uses the protocol: one call is one transaction in few round trips, also for many runs. Queued calls
// share a transaction. All connections share one thread.
#include <filesystem>
#include <future>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresPipeline : public PostgresStores {
 protected:
  using Run = latchkey::Run;

  // Makes the writer commit twice, so that writer_traffic() recognizes its connection.
  void make_known() {
    Verbs verbs(*store_);
    const Won won = std::get<Won>(verbs.claim(a_claim("before all")));
    verbs.settle({{}, won.run.id(), won.fence, Complete{"", {}}});
  }
  // The traffic of the only writer. The other connections send no COMMIT, except one that stores the server identity.
  PgTraffic writer_traffic() {
    PgTraffic found;
    int writers = 0;
    std::uint64_t of_others = 0;
    for (const PgTraffic& one : proxy_.traffic()) {
      if (one.commits > 1)
        found = one, ++writers;
      else
        of_others += one.commits;
    }
    EXPECT_EQ(writers, 1);
    EXPECT_LE(of_others, 1u);
    return found;
  }
  PgTraffic traffic_of(auto act) {
    const PgTraffic before = writer_traffic();
    act();
    const PgTraffic after = writer_traffic();
    return {after.statements - before.statements, after.flights - before.flights, after.commits - before.commits};
  }
  // The traffic of enqueue, take and settle for `count` jobs. Jobs with a key get a follow-up.
  std::vector<PgTraffic> process_jobs(int count, const std::string& prefix) {
    std::vector<EnqueueRequest> jobs;
    for (int i = 0; i < count; ++i)
      jobs.push_back(prefix.empty() ? EnqueueRequest{.function = "f"} : a_job(prefix + std::to_string(i)));
    Verbs verbs(*store_);
    std::vector<PgTraffic> costs;
    costs.push_back(traffic_of([&] { verbs.enqueue_all(jobs); }));
    std::vector<Taken> taken;
    costs.push_back(traffic_of([&] {
      taken = verbs.take(
          {.functions = {"f"}, .limit = static_cast<std::uint32_t>(count), .session = id_of(5), .lease = 1min});
    }));
    EXPECT_EQ(taken.size(), jobs.size());
    std::vector<SettleRequest> endings;
    for (const Taken& one : taken) {
      Complete ending{"r", {}};
      if (!prefix.empty()) {
        ending.follow_ups.push_back(a_job("then " + one.run.head->key));
        ending.follow_ups.back().function = "g";
        ending.follow_ups.back().key_hash = hash_key("default", "g", ending.follow_ups.back().key);
      }
      endings.push_back({{}, one.run.id(), one.fence, std::move(ending)});
    }
    costs.push_back(traffic_of([&] {
      for (const SettleReply& reply : verbs.settle_all(endings)) EXPECT_TRUE(std::get<Settled>(reply).changed);
    }));
    return costs;
  }
  std::string ask(const std::string& sql) { return PgClient(url()).ask_one(sql); }

  FaultProxy proxy_{PgServer::instance().port()};
  // With a real clock, about one batch per second has one more statement, which writes the mark of the store's clock.
  ManualClock time_{clock_.now()};
  std::unique_ptr<PostgresStore> store_ = open(proxy_.url(database()), {.writers = 1, .clock = &time_});
};

class PostgresPipelineOf : public PostgresPipeline, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Jobs, PostgresPipelineOf, testing::Values("", "key"),
                         [](const auto& prefix) { return prefix.param.empty() ? "Plain" : "Keyed"; });

// A connection prepares each statement at its first use, so the first round is not measured.
TEST_P(PostgresPipelineOf, RoundTripsDoNotGrowWithCount) {
  const auto named = [&](const char* round) { return GetParam().empty() ? "" : GetParam() + round; };
  make_known();
  process_jobs(5, named("a"));
  const auto few = process_jobs(5, named("b"));
  const auto many = process_jobs(500, named("c"));
  for (std::size_t verb = 0; verb < many.size(); ++verb) {
    EXPECT_EQ(many[verb].commits, 1u) << verb;
    EXPECT_EQ(many[verb].flights, few[verb].flights) << verb;
    EXPECT_LE(many[verb].flights, 3u) << verb;
    EXPECT_LE(many[verb].statements, few[verb].statements + 1) << "at most one more draw of ids: " << verb;
    EXPECT_GE(many[verb].statements, 2 * many[verb].flights) << "statements share round trips: " << verb;
  }
}

// A purge reads the runs of a slice, and the reasons not to purge them, in a fixed number of round trips.
enum class Old : std::uint8_t { plain, keyed, failed, unread, waited_for };
class PostgresPurgeOf : public PostgresPipeline, public testing::WithParamInterface<Old> {
 protected:
  // The traffic of a purge of `count` runs.
  PgTraffic purge(std::size_t count, const std::string& prefix) {
    Verbs verbs(*store_);
    const Old old = GetParam();
    // Start behind the runs that earlier purges have left.
    PgClient(url()).execute("SELECT setval('latchkey.purged', max(seq)) FROM latchkey.runs");
    std::vector<EnqueueRequest> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back(old == Old::plain ? EnqueueRequest{.function = "f"} : a_job(prefix + std::to_string(i)));
      jobs.back().window = 0ms;
    }
    verbs.enqueue_all(jobs);
    const auto taken = verbs.take(
        {.functions = {"f"}, .limit = static_cast<std::uint32_t>(count), .session = id_of(5), .lease = 1min});
    const bool fails = old >= Old::failed;
    std::vector<SettleRequest> endings;
    std::vector<EnqueueRequest> waiting;
    for (const Taken& one : taken) {
      endings.push_back({{}, one.run.id(), one.fence, fails ? Ending{permanent()} : Ending{Complete{"r", {}}}});
      waiting.push_back({.function = "g", .after = {one.run.id()}});
    }
    if (old == Old::waited_for) verbs.enqueue_all(waiting);
    verbs.settle_all(endings);
    if (old == Old::failed || old == Old::waited_for)
      store_->acknowledge({}, store_->list_dead_letters({}).value().entries.at(0).id, "ada").value();
    time_.advance(1ms);
    Swept purged;
    const PgTraffic cost =
        traffic_of([&] { purged = verbs.purge({.done = 0ms, .failed = 0ms}, static_cast<std::uint32_t>(count)); });
    EXPECT_EQ(purged.changed, old < Old::unread ? count : 0u);
    return cost;
  }
};
constexpr const char* kOldNames[] = {"Plain", "Keyed", "Failed", "Unread", "WaitedFor"};
INSTANTIATE_TEST_SUITE_P(Runs, PostgresPurgeOf,
                         testing::Values(Old::plain, Old::keyed, Old::failed, Old::unread, Old::waited_for),
                         [](const auto& old) { return kOldNames[static_cast<int>(old.param)]; });

TEST_P(PostgresPurgeOf, RoundTripsDoNotGrowWithCount) {
  make_known();
  purge(5, "a");
  const PgTraffic few = purge(5, "b");
  const PgTraffic many = purge(500, "c");
  EXPECT_EQ(many.commits, 1u);
  EXPECT_EQ(many.flights, few.flights);
  EXPECT_LE(many.flights, 5u);
  EXPECT_EQ(many.statements, few.statements);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.dead_letters WHERE acknowledged_at IS NOT NULL"),
            GetParam() == Old::waited_for ? "3" : "0");
}

// The next execution of a batch uses the ids that the last one drew, so a call can create more runs than one draw has
// ids.
TEST_F(PostgresPipeline, CallCreatesMoreRunsThanOneDraw) {
  Verbs verbs(*store_);
  EnqueueRequest old = a_job("old");
  old.window = 0ms;
  verbs.enqueue(old);
  const auto taken = verbs.take({.functions = {"f"}, .limit = 1, .session = id_of(5), .lease = 1min});
  ASSERT_EQ(taken.size(), 1u);
  verbs.settle({{}, taken[0].run.id(), taken[0].fence, Complete{"r", {}}});
  std::vector<EnqueueRequest> jobs{old};  // its key needs another read
  for (int i = 1; i < 2500; ++i) jobs.push_back(a_job("new" + std::to_string(i)));
  std::set<RunId> made;
  for (const EnqueueReply& reply : verbs.enqueue_all(jobs)) made.insert(std::get<Enqueued>(reply).run.id());
  EXPECT_EQ(made.size(), jobs.size());
}

// The failed runs belong to many tenants, so that each one needs its own dead letter.
TEST_F(PostgresPipeline, SweepRoundTripsDoNotGrowWithCount) {
  make_known();
  const auto sweep = [&](std::uint32_t count) {
    std::vector<EnqueueRequest> jobs;
    for (std::uint32_t i = 0; i < count; ++i)
      jobs.push_back({.tenant = "t" + std::to_string(i), .function = "f", .retry = {.retries = 0}});
    Verbs verbs(*store_);
    verbs.enqueue_all(jobs);
    EXPECT_EQ(verbs.take({.functions = {"f"}, .limit = count, .session = id_of(5), .lease = 1h}).size(), count);
    PgClient(url()).execute("UPDATE latchkey.blocks SET lease_until = 1");
    return traffic_of([&] { EXPECT_EQ(verbs.sweep(count).changed, count); });
  };
  sweep(5);
  const PgTraffic few = sweep(5), many = sweep(200);
  EXPECT_EQ(many.commits, 1u);
  EXPECT_EQ(many.flights, few.flights);
  EXPECT_LE(many.flights, 5u);
  EXPECT_EQ(ask("SELECT count(*) || ' ' || sum(count) FROM latchkey.dead_letters"), "200 210");
}

// All rows that a call wrote have the same xmin.
TEST_P(PostgresPipelineOf, EachCallIsOneTransaction) {
  const auto writers = [&](const std::string& table) {
    return ask("SELECT count(DISTINCT xmin::text) || ' of ' || count(*) FROM latchkey." + table);
  };
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < 500; ++i)
    jobs.push_back(GetParam().empty() ? EnqueueRequest{.function = "f"} : a_job(std::to_string(i)));
  Verbs(*store_).enqueue_all(jobs);
  EXPECT_EQ(writers("runs"), "1 of 500");
  EXPECT_EQ(writers("batches"), "1 of 1");
  EXPECT_EQ(ask("SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM latchkey.runs UNION ALL SELECT xmin FROM "
                "latchkey.keys UNION ALL SELECT xmin FROM latchkey.blocks UNION ALL SELECT xmin FROM latchkey.states "
                "UNION ALL SELECT xmin FROM latchkey.batches) w"),
            "1");
  const auto taken = Verbs(*store_).take({.functions = {"f"}, .limit = 500, .session = id_of(5), .lease = 1min});
  ASSERT_EQ(taken.size(), 500u);
  EXPECT_EQ(writers("batches"), "2 of 2");
  EXPECT_EQ(ask("SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM latchkey.blocks UNION ALL SELECT xmin FROM "
                "latchkey.states) w"),
            "1");
  std::vector<SettleRequest> endings;
  for (const Taken& one : taken) endings.push_back({{}, one.run.id(), one.fence, Complete{"r", {}}});
  Verbs(*store_).settle_all(endings);
  EXPECT_EQ(writers("batches"), "3 of 3");
  EXPECT_EQ(ask("SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM latchkey.outcomes UNION ALL SELECT xmin FROM "
                "latchkey.states) w"),
            "1");
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.job_runs WHERE status = 'completed'"), "500");
}

// The calls are made in a callback on the store's thread, so all of them are queued when the writer takes its next
// batch.
TEST_F(PostgresPipeline, QueuedCallsShareATransaction) {
  constexpr int kCalls = 500;
  struct Pending {
    std::promise<void> all;
    std::atomic<int> left{kCalls};
  };
  auto pending = std::make_shared<Pending>();
  make_known();
  const PgTraffic asked = traffic_of([&] {
    store_->claim(a_claim("second"), [this, pending](Result<ClaimReply>) {
      for (int i = 0; i < kCalls; ++i)
        store_->claim(a_claim(std::to_string(i)), [pending](Result<ClaimReply> reply) {
          EXPECT_TRUE(reply && std::holds_alternative<Won>(*reply));
          if (--pending->left == 0) pending->all.set_value();
        });
    });
    pending->all.get_future().wait();
  });
  EXPECT_EQ(asked.commits, 3u) << "the first call, then 256 calls, then the rest";
  EXPECT_LE(asked.flights, 9u);
}

std::ptrdiff_t count_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

TEST_F(PostgresPipeline, SixteenConnectionsHaveOneThread) {
  std::vector<std::ptrdiff_t> threads;
  for (const unsigned writers : {1u, 16u}) {
    const std::ptrdiff_t before = count_threads();
    const std::string url_of = url() + "?application_name=writers" + std::to_string(writers);
    const auto store = open(url_of, {.writers = writers, .batch = 1});
    PgClient watch(url());
    // A batch has one command, so concurrent calls make every writer open its connection.
    const std::string many =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'writers" + std::to_string(writers) + "'";
    int round = 0;
    do {
      std::vector<std::future<void>> answers;
      for (unsigned i = 0; i < 4 * writers; ++i) {
        auto promise = std::make_shared<std::promise<void>>();
        answers.push_back(promise->get_future());
        store->claim(a_claim(std::to_string(writers) + ":" + std::to_string(round) + ":" + std::to_string(i)),
                     [promise](Result<ClaimReply>) { promise->set_value(); });
      }
      for (auto& answer : answers) answer.wait();
    } while (std::stoul(watch.ask_one(many)) < writers && ++round < 1000);
    EXPECT_GE(std::stoul(watch.ask_one(many)), writers) << "not every writer has a connection";
    threads.push_back(count_threads() - before);
  }
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_EQ(threads[0], 1);
}

}  // namespace
}  // namespace latchkey
