// What the store does not look at each time, and that it is right all the same: jobs before its mark, keys that it
// takes to be new; and what it keeps for itself, for a while.
#include <atomic>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresShortcuts : public PostgresStores {
 protected:
  static EnqueueRequest job(std::string input) { return {.function = "f", .input = std::move(input)}; }
};

// One host's batch is under way for seconds: due when it was begun, seen when it commits. The others have gone on
// to jobs that are due later. They look from their mark, and at all there is once a second.
TEST_F(PostgresShortcuts, AJobCommittedBehindTheMarkIsTakenWithinAMoment) {
  FaultProxy proxy(PgServer::instance().port());
  auto slow = open(proxy.url(database()), {.writers = 1});
  auto store = open(url());
  Verbs(*slow).enqueue(job("first"));  // its connection is open
  proxy.slow_all(1s);
  std::promise<Duration> kept;
  auto late = kept.get_future();
  std::jthread caller([&] {
    Verbs(*slow).enqueue(job("late"));
    kept.set_value(clock_.elapsed());
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
  ASSERT_TRUE(taken_at) << "it was lost";
  EXPECT_GT(others, 10) << "the test did not test: nobody went on";
  // The caller hears of its commit a second after it happened. Who looks from the mark only never finds it.
  EXPECT_LT(*taken_at, late.get() + 5s);
  proxy.slow_all(0s);
}

// Counters are drawn ahead, for all lanes. Two calls that each find enough of them, and together do not: the later one
// draws more, and not only as many as it lacked when it had used up the others.
TEST_F(PostgresShortcuts, CountersThatAnotherLaneTookAreDrawnAnew) {
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
  for (auto& answer : {enqueue(1), enqueue(1)}) answer.wait();  // both connections are open
  const auto drawn = [&] { return std::stoul(PgClient(url()).ask_one("SELECT last_value FROM latchkey.counters")); };
  const std::size_t before = drawn(), left = before + 999 - 2;
  proxy.slow_all(300ms);
  auto first = enqueue(left * 3 / 5);
  // The first is at the server, and its answer on the way: now the second looks what there is.
  PgClient observer(url());
  const char* const is_there =
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
  ASSERT_TRUE(comes_true([&] { return observer.ask_one(is_there) == "t"; }));
  auto second = enqueue(left * 3 / 5);
  EXPECT_EQ(first.get(), left * 3 / 5);
  ASSERT_EQ(second.wait_for(kPatience), std::future_status::ready) << "it goes round for ever";
  EXPECT_EQ(second.get(), left * 3 / 5);
  EXPECT_GT(drawn(), before) << "the test did not test";
  proxy.slow_all(0ms);
}

// As behind a pooler that was not recognised: the session knows none of the statements that a lane has named. All lanes
// ask plainly then.
TEST_F(PostgresShortcuts, StatementsThatASessionHasForgottenAreAskedPlainly) {
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
  EXPECT_EQ(claim_at_once("before"), 20) << "every lane has named some";
  PgClient hand(url());
  hand.execute(
      "CREATE FUNCTION public.forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DEALLOCATE ALL; RETURN NEW; END $$;"
      "CREATE TRIGGER forget AFTER INSERT ON latchkey.batches FOR EACH ROW EXECUTE FUNCTION public.forget()");
  for (int round = 0; round < 10; ++round) EXPECT_EQ(claim_at_once(std::to_string(round) + "."), 20);
  EXPECT_EQ(hand.ask_one("SELECT count(*) FROM latchkey.runs"), "220");
}

// After so many batches without a known key they are not looked for. The server's log says where the index had to
// judge.
TEST_F(PostgresShortcuts, AKeyThatIsTakenToBeNewIsAnsweredTruly) {
  PgCluster server;
  auto store = open(server.url(), {.writers = 1}), other = open(server.url());
  const auto collisions = [&] {
    int count = 0;
    const std::string log = server.log();
    for (std::size_t at = 0; (at = log.find("duplicate key value", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const auto meet = [&](const std::string& key) {
    const auto first = std::get<Enqueued>(Verbs(*other).enqueue(a_job(key)));
    EXPECT_FALSE(first.duplicate);
    const auto again = std::get<Enqueued>(Verbs(*store).enqueue(a_job(key)));
    EXPECT_TRUE(again.duplicate);
    EXPECT_EQ(again.run.id(), first.run.id());
    EnqueueRequest unlike = a_job(key);
    unlike.fingerprint = kOther;
    EXPECT_TRUE(std::holds_alternative<Mismatch>(Verbs(*store).enqueue(unlike)));
  };
  meet("known at once");
  EXPECT_EQ(collisions(), 0) << "it was looked for";
  for (int i = 0; i < 150; ++i)
    EXPECT_FALSE(std::get<Enqueued>(Verbs(*store).enqueue(a_job("new" + std::to_string(i)))).duplicate);
  meet("taken to be new");
  EXPECT_EQ(collisions(), 1) << "the test did not test";
  meet("looked for again");
  EXPECT_EQ(collisions(), 1) << "trust is gone for a while";

  // Beside new ones in one call, and twice in it.
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

TEST_F(PostgresShortcuts, NamesOfBatchesArePurgedAfterAWhile) {
  ManualClock clock(clock_.now());
  auto store = open(url(), {.clock = &clock});
  PgClient session(url());
  const auto count = [&] { return std::stoi(session.ask_one("SELECT count(*) FROM latchkey.batches")); };
  for (int i = 0; i < 30; ++i) Verbs(*store).claim(a_claim("old" + std::to_string(i)));
  EXPECT_EQ(count(), 30);
  Verbs(*store).purge();
  EXPECT_GE(count(), 30) << "one may still be asked for";
  clock.advance(2h);
  Verbs(*store).claim(a_claim("new"));
  const int before = count();
  Verbs(*store).purge();
  EXPECT_GE(before, 31);
  EXPECT_LE(count(), 2) << "the new one's, and that of the purge itself";
  store.reset();
}

// Rows show a tenant's UUID, found by its name: kept by the batch that first meets it, in whatever way.
TEST_F(PostgresShortcuts, TenantsOfBatchesAreKnownToTheViews) {
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
