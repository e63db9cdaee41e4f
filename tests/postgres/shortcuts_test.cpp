// The store's optimizations do not change its replies: it does not scan jobs before its mark, assumes that keys are
// new, and caches ids and prepared statements.
#include <atomic>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class PostgresShortcuts : public PostgresStores {
 protected:
  static EnqueueRequest job(std::string input) { return {.function = "f", .input = std::move(input)}; }
};

// One store's batch takes seconds. Its job is due before the batch commits, and the other store has taken later jobs
// and advanced its mark. A store scans from its mark, and scans all jobs once a second.
TEST_F(PostgresShortcuts, LateCommittedJobIsTakenSoon) {
  FaultProxy proxy(PgServer::instance().port());
  auto slow = open(proxy.url(database()), {.writers = 1});
  auto store = open(url());
  Verbs(*slow).enqueue(job("first"));  // opens the connection
  proxy.slow_all(1s);
  std::promise<Duration> committed;
  auto late = committed.get_future();
  std::jthread caller([&] {
    Verbs(*slow).enqueue(job("late"));
    committed.set_value(clock_.elapsed());
  });
  std::optional<Duration> taken_at;
  int others = 0;
  const Duration patience = clock_.elapsed() + kPatience;
  for (int i = 0; !taken_at && clock_.elapsed() < patience; ++i) {
    Verbs(*store).enqueue(job(std::to_string(i)));
    std::vector<SettleRequest> settles;
    for (const Taken& taken : Verbs(*store).take({.functions = {"f"}, .limit = 5, .session = id_of(5)})) {
      settles.push_back({{}, taken.run.id(), taken.fence, Complete{"r", {}}});
      if (taken.run.head->input == "late") taken_at = clock_.elapsed();
      ++others;
    }
    Verbs(*store).settle_all(settles);
  }
  ASSERT_TRUE(taken_at) << "the job was lost";
  EXPECT_GT(others, 10) << "the other store took too few jobs";
  // The reply to the commit is delayed by a second. A scan from the mark alone would never find the job.
  EXPECT_LT(*taken_at, late.get() + 5s);
  proxy.slow_all(0s);
}

// The store draws ids in advance, for all writers. Each of two calls finds enough ids, but there are not enough for
// both: the later call draws enough for itself.
TEST_F(PostgresShortcuts, IdsUsedByOtherWriterAreRedrawn) {
  FaultProxy proxy(PgServer::instance().port());
  auto store = open(proxy.url(database()), {.writers = 2});
  const auto enqueue = [&](std::size_t count) {
    std::promise<std::size_t> made;
    auto answer = made.get_future();
    store->enqueue(std::vector<EnqueueRequest>(count, job("")), [made = std::move(made)](auto replies) mutable {
      made.set_value(std::ranges::count_if(
          *replies, [](const EnqueueReply& reply) { return std::holds_alternative<Enqueued>(reply); }));
    });
    return answer;
  };
  for (auto& answer : {enqueue(1), enqueue(1)}) answer.wait();  // opens both connections
  const auto drawn = [&] { return std::stoul(PgClient(url()).ask_one("SELECT last_value FROM latchkey.counters")); };
  const std::size_t before = drawn(), left = before + 999 - 2;
  proxy.slow_all(300ms);
  auto first = enqueue(left * 3 / 5);
  // The second call reads the number of ids while the first one's reply is delayed.
  PgClient observer(url());
  const char* const is_there =
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
  ASSERT_TRUE(wait_until([&] { return observer.ask_one(is_there) == "t"; }));
  auto second = enqueue(left * 3 / 5);
  EXPECT_EQ(first.get(), left * 3 / 5);
  ASSERT_EQ(second.wait_for(kPatience), std::future_status::ready) << "the batch repeats forever";
  EXPECT_EQ(second.get(), left * 3 / 5);
  EXPECT_GT(drawn(), before) << "no ids were drawn";
  proxy.slow_all(0ms);
}

// Simulates an undetected pooler: the session has lost a writer's prepared statements. All writers then stop using
// prepared statements.
TEST_F(PostgresShortcuts, LostPreparedStatementsAreNotUsed) {
  auto store = open(url(), {.coalesce_below = 0});
  const auto claim_at_once = [&](const std::string& name) {
    std::vector<std::jthread> callers;
    std::atomic<int> won{0};
    for (int i = 0; i < 20; ++i)
      callers.emplace_back([&, i] {
        won += std::holds_alternative<Won>(Verbs(*store).claim(a_claim(name + std::to_string(i)))) ? 1 : 0;
      });
    callers.clear();
    return won.load();
  };
  EXPECT_EQ(claim_at_once("before"), 20) << "every writer has prepared statements";
  PgClient admin(url());
  admin.execute(
      "CREATE FUNCTION public.forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DEALLOCATE ALL; RETURN NEW; END $$;"
      "CREATE TRIGGER forget AFTER INSERT ON latchkey.batches FOR EACH ROW EXECUTE FUNCTION public.forget()");
  for (int round = 0; round < 10; ++round) EXPECT_EQ(claim_at_once(std::to_string(round) + "."), 20);
  EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.runs"), "220");
}

// After many batches without an existing key, the store assumes that keys are new and does not search them. The
// server's log shows each unique violation.
TEST_F(PostgresShortcuts, KeyWronglyAssumedNewIsDuplicate) {
  PgCluster server;
  auto store = open(server.url(), {.writers = 1}), other = open(server.url());
  const auto collisions = [&] {
    int count = 0;
    const std::string log = server.log();
    for (std::size_t at = 0; (at = log.find("duplicate key value", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const auto repeat = [&](const std::string& key) {
    const auto first = std::get<Enqueued>(Verbs(*other).enqueue(a_job(key)));
    EXPECT_FALSE(first.duplicate);
    const auto again = std::get<Enqueued>(Verbs(*store).enqueue(a_job(key)));
    EXPECT_TRUE(again.duplicate);
    EXPECT_EQ(again.run.id(), first.run.id());
    EnqueueRequest unlike = a_job(key);
    unlike.fingerprint = kOther;
    EXPECT_TRUE(std::holds_alternative<Mismatch>(Verbs(*store).enqueue(unlike)));
  };
  repeat("searched");
  EXPECT_EQ(collisions(), 0) << "the store did not search the key";
  for (int i = 0; i < 150; ++i)
    EXPECT_FALSE(std::get<Enqueued>(Verbs(*store).enqueue(a_job("new" + std::to_string(i)))).duplicate);
  repeat("assumed new");
  EXPECT_EQ(collisions(), 1) << "the store did not assume a new key";
  repeat("searched again");
  EXPECT_EQ(collisions(), 1) << "the store did not search after a unique violation";

  // A call with existing keys, new keys, and one key twice.
  for (int i = 150; i < 300; ++i) Verbs(*store).enqueue(a_job("new" + std::to_string(i)));
  const auto replies =
      Verbs(*store).enqueue_all({a_job("new7"), a_job("really new"), a_job("really new"), a_job("new8")});
  std::vector<bool> duplicates;
  for (const auto& reply : replies) duplicates.push_back(std::get<Enqueued>(reply).duplicate);
  EXPECT_EQ(duplicates, (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(collisions(), 2);
  EXPECT_EQ(PgClient(server.url()).ask_one("SELECT count(*) FROM latchkey.runs"), "304");
  store.reset();
  other.reset();
}

TEST_F(PostgresShortcuts, OldBatchNamesArePurged) {
  ManualClock clock(clock_.now());
  auto store = open(url(), {.clock = &clock});
  PgClient session(url());
  const auto count = [&] { return std::stoi(session.ask_one("SELECT count(*) FROM latchkey.batches")); };
  for (int i = 0; i < 30; ++i) Verbs(*store).claim(a_claim("old" + std::to_string(i)));
  EXPECT_EQ(count(), 30);
  Verbs(*store).purge();
  EXPECT_GE(count(), 30) << "a recent batch name was purged";
  clock.advance(2h);
  Verbs(*store).claim(a_claim("new"));
  const int before = count();
  Verbs(*store).purge();
  EXPECT_GE(before, 31);
  EXPECT_LE(count(), 2) << "more than the new batch and the purge itself";
  store.reset();
}

// The views show a tenant's UUID, which they find by name. The first batch that uses a tenant inserts its name.
TEST_F(PostgresShortcuts, ViewsShowTenantsOfBatches) {
  auto store = open(url());
  const std::string own = "0190c8f5-5d2c-7c6b-9a52-0123456789ab";
  Verbs(*store).claim(a_claim("k", "acme"));
  Verbs(*store).enqueue_all({a_job("k", "globex"), a_job("k", own)});
  const Won won = std::get<Won>(Verbs(*store).claim(a_claim("parent", "initech")));
  Verbs(*store).settle({{}, won.run.id(), won.fence, permanent()});
  PgClient session(url());
  EXPECT_EQ(session.ask_one("SELECT string_agg(name, ' ' ORDER BY name) FROM latchkey.tenants"),
            own + " acme globex initech");
  EXPECT_EQ(session.ask_one("SELECT count(*) FROM latchkey.tenants WHERE id = latchkey.name_uuid(name)"), "4");
  EXPECT_EQ(session.ask_one("SELECT count(*) FROM latchkey.job_runs j JOIN latchkey.tenants t ON t.id = j.tenant_id"),
            "4");
  EXPECT_EQ(session.ask_one("SELECT tenant_id FROM latchkey.job_runs WHERE tenant_id::text = '" + own + "'"), own);
  EXPECT_EQ(session.ask_one("SELECT name FROM latchkey.tenants t JOIN latchkey.dead_letter_queue q ON q.org_id = t.id"),
            "initech");
}

}  // namespace
}  // namespace latchkey
