// The notifications (NOTIFY) of an open store, and that no operation depends on their delivery.
#include <thread>

#include "conformance/store_test.hpp"
#include "sql/sql_fixture.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class Notifications : public PostgresStores {
 protected:
  Notifications() { listener_.run("LISTEN latchkey_work; LISTEN dead_letter_inserted"); }
  Verbs one() { return Verbs(*one_); }
  Verbs two() { return Verbs(*two_); }

  // All payloads on the channel so far. Waits until there are `least`.
  std::vector<std::string> wait_for(const std::string& channel, std::size_t least) {
    for (const Duration limit = clock_.elapsed() + kPatience; clock_.elapsed() < limit; std::this_thread::yield()) {
      for (const std::string& one : listener_.notifications()) received_.push_back(one);
      std::vector<std::string> of_channel;
      for (const std::string& one : received_)
        if (one.starts_with(channel + " ")) of_channel.push_back(one.substr(channel.size() + 1));
      if (of_channel.size() >= least) return of_channel;
    }
    ADD_FAILURE() << "too few notifications on " << channel;
    return {};
  }
  // Notifications arrive in the order of their commits, so the test's own notification is the last one.
  std::vector<std::string> all_of(const std::string& channel) {
    const std::string last = "last " + std::to_string(++markers_);
    PgClient(url()).execute("NOTIFY " + channel + ", '" + last + "'");
    auto all = wait_for(channel, 1);
    while (!all.empty() && all.back() != last) all = wait_for(channel, all.size() + 1);
    std::erase_if(all, [](const std::string& payload) { return payload.starts_with("last "); });
    return all;
  }
  // The number of work notifications of a store that only executes `act`. The store notifies a moment after its
  // commits, at the latest when it closes.
  std::size_t count_by(auto act) {
    const std::size_t before = all_of("latchkey_work").size();
    {
      const auto store = open(url(), {.clock = &time_});
      act(*store);
    }
    return all_of("latchkey_work").size() - before;
  }
  // The number of work notifications of a user's SQL statements.
  std::size_t count_by_sql(const std::string& statements) {
    const std::size_t before = all_of("latchkey_work").size();
    PgClient session(url());
    session.execute("SET app.current_tenant = 'default'");
    session.execute(statements);
    return all_of("latchkey_work").size() - before;
  }
  static std::vector<Taken> take(Store& store, Duration lease = 1h) {
    return Verbs(store).take({.functions = {"f"}, .limit = 9, .session = id_of(5), .lease = lease});
  }
  void fail_one(const std::string& key) {
    const Won won = std::get<Won>(one().claim(a_claim(key, "acme")));
    ASSERT_TRUE(
        std::get<Settled>(one().settle({{}, won.run.id(), won.fence, permanent("a secret reason")})).dead_letter);
  }

  std::unique_ptr<PostgresStore> one_ = open(url()), two_ = open(url());
  Sql listener_{url()};
  std::vector<std::string> received_;
  int markers_ = 0;
  ManualClock time_{clock_.now()};
};

TEST_F(Notifications, CommitNotifiesWorkAtMostOnce) {
  std::vector<EnqueueRequest> jobs(500, {.function = "f", .input = "i"});
  one().enqueue_all(jobs);
  wait_for("latchkey_work", 1);
  constexpr std::size_t kMore = 20;
  for (std::size_t i = 0; i < kMore; ++i) one().enqueue({.function = "f", .input = "i"});
  // The store notifies a moment after each commit, before all these commits are done.
  wait_for("latchkey_work", 2);
  const auto commits = std::stoul(PgClient(url()).ask_one("SELECT count(*) FROM latchkey.batches"));
  EXPECT_EQ(commits, 1 + kMore) << "500 in one call are one commit";
  one_.reset();  // sends the pending notifications
  const auto payloads = all_of("latchkey_work");
  EXPECT_GE(payloads.size(), 2u);
  EXPECT_LE(payloads.size(), commits);
  for (const std::string& payload : payloads) EXPECT_EQ(payload, "");
}

// A commit notifies once, for any number of jobs.
TEST_F(Notifications, EnqueueNotifiesOnce) {
  EXPECT_EQ(count_by([](Store& store) { Verbs(store).enqueue_all({500, EnqueueRequest{.function = "g"}}); }), 1u);
  EXPECT_EQ(count_by([](Store& store) { Verbs(store).enqueue({.function = "g", .delay = 1h}); }), 1u) << "due later";
}

TEST_F(Notifications, FollowUpsNotifyOnce) {
  std::optional<Won> won;
  EXPECT_EQ(count_by([&](Store& store) { won = std::get<Won>(Verbs(store).claim(a_claim())); }), 0u);
  const std::vector<EnqueueRequest> next(3, EnqueueRequest{.function = "f"});
  EXPECT_EQ(count_by([&](Store& store) { Verbs(store).settle({{}, won->run.id(), won->fence, Complete{"r", next}}); }),
            1u);
  EXPECT_EQ(take(*one_).size(), 3u);
}

TEST_F(Notifications, DependentsNotifyWhenReleased) {
  std::optional<Taken> first;
  count_by([&](Store& store) {
    Verbs(store).enqueue({.function = "f"});
    first = take(store).at(0);
  });
  const EnqueueRequest waiting{.function = "f", .after = {first->run.id()}};
  EXPECT_EQ(count_by([&](Store& store) { Verbs(store).enqueue_all({3, waiting}); }), 0u)
      << "no worker can take them yet";
  EXPECT_EQ(
      count_by([&](Store& store) { Verbs(store).settle({{}, first->run.id(), first->fence, Complete{"r", {}}}); }), 1u);
  EXPECT_EQ(take(*one_).size(), 3u);
}

TEST_F(Notifications, OperatorRetryNotifiesOnce) {
  std::optional<Uuid> letter;
  std::optional<Taken> one_of;
  count_by([&](Store& store) {
    Verbs(store).enqueue_all({3, EnqueueRequest{.function = "f"}});
    for (const Taken& each : take(store)) {
      one_of = each;
      letter = std::get<Settled>(Verbs(store).settle({{}, each.run.id(), each.fence, permanent()})).dead_letter;
    }
  });
  EXPECT_EQ(count_by([&](Store& store) { Verbs(store).move({{}, one_of->run.id(), RetryByHand{}}); }), 1u);
  EXPECT_EQ(count_by([&](Store& store) {
              EXPECT_TRUE(store.act_on_dead_letter(
                  {.tenant = {}, .dead_letter = *letter, .runs = {}, .move = RetryByHand{}, .by = "pat"}));
            }),
            1u)
      << "the other two";
  EXPECT_EQ(take(*one_).size(), 3u);
}

// The jobs are in a block at their first attempt, and in rows of their own at the second.
TEST_F(Notifications, SweepThatRequeuesNotifiesOnce) {
  count_by(
      [&](Store& store) { Verbs(store).enqueue_all({3, EnqueueRequest{.function = "f", .retry = {.first = 0ms}}}); });
  for (const std::uint32_t attempt : {1u, 2u}) {
    SCOPED_TRACE(attempt);
    EXPECT_EQ(count_by([&](Store& store) {
                const auto taken = take(store, 1min);
                ASSERT_EQ(taken.size(), 3u);
                EXPECT_EQ(taken[0].run.attempt, attempt);
              }),
              0u);
    time_.advance(2min);
    EXPECT_EQ(count_by([&](Store& store) { EXPECT_EQ(Verbs(store).sweep().changed, 3u); }), 1u);
  }
}

TEST_F(Notifications, ReleaseNotifiesOnce) {
  count_by([&](Store& store) { Verbs(store).enqueue({.function = "f"}); });
  EXPECT_EQ(count_by([&](Store& store) {
              const Taken taken = take(store).at(0);
              EXPECT_TRUE(std::get<Settled>(Verbs(store).settle({{}, taken.run.id(), taken.fence, Release{}})).changed);
            }),
            1u);
}

// The failure that queued the retry has notified. Workers wait for the retry's time.
TEST_F(Notifications, DueRetryDoesNotNotify) {
  count_by([&](Store& store) {
    Verbs(store).enqueue({.function = "f"});
    const Taken taken = take(store).at(0);
    EXPECT_TRUE(std::get<Settled>(Verbs(store).settle({{}, taken.run.id(), taken.fence, retryable()})).changed);
  });
  EXPECT_EQ(count_by([&](Store& store) { EXPECT_TRUE(take(store).empty()); }), 0u);
  time_.advance(1h);
  EXPECT_EQ(count_by([&](Store& store) {
              EXPECT_EQ(Verbs(store).sweep().changed, 0u);
              EXPECT_EQ(take(store).size(), 1u);
            }),
            0u);
}

// A user's transaction notifies with its commit, once for any number of jobs, and not after a rollback.
TEST_F(Notifications, SqlTransactionNotifiesOnce) {
  EXPECT_EQ(count_by_sql("SELECT latchkey.enqueue('f') FROM generate_series(1, 5)"), 1u);
  EXPECT_EQ(count_by_sql("BEGIN; SELECT latchkey.enqueue('f'); ROLLBACK"), 0u);
  const auto wait_for_it = [&](const std::string& key) {
    PgClient session(url());
    session.execute("SET app.current_tenant = 'default'");
    const std::string own = session.ask_one(
        "SELECT quote_literal(run) || ', ' || fence FROM latchkey.begin_run('f', '" + key + "', retries => 0)");
    const std::string id = own.substr(0, own.find(','));
    session.execute("SELECT latchkey.enqueue('f', after => ARRAY[" + id +
                    "]::uuid[], on_failed => 'run') FROM generate_series(1, 2)");
    return own;
  };
  const std::string completed = wait_for_it("completed"), failed = wait_for_it("failed"), alone = wait_for_it("alone");
  EXPECT_EQ(count_by_sql("BEGIN; SELECT latchkey.complete_run(" + completed + "); ROLLBACK"), 0u);
  EXPECT_EQ(count_by_sql("SELECT latchkey.complete_run(" + completed + ")"), 1u) << "the dependents are released";
  EXPECT_EQ(count_by_sql("SELECT latchkey.complete_run(" + completed + ", if_settled => 'answer')"), 0u)
      << "the same again";
  EXPECT_EQ(count_by_sql("SELECT latchkey.fail_run(" + failed + ", 'm')"), 1u);
  EXPECT_EQ(count_by_sql("BEGIN; SELECT latchkey.complete_run(" + alone +
                         "); SELECT latchkey.enqueue('f'); SELECT latchkey.enqueue('f'); COMMIT"),
            1u);
  EXPECT_EQ(count_by_sql("SELECT latchkey.begin_run('f', 'no work')"), 0u);
}

TEST_F(Notifications, ClaimAndSettleDoNotNotify) {
  const Won won = std::get<Won>(one().claim(a_claim()));
  one().settle({{}, won.run.id(), won.fence, Complete{"r", {}}});
  one_.reset();
  EXPECT_TRUE(all_of("latchkey_work").empty());
}

// C5, C8: a dead letter notifies when it is inserted and each time it is updated. The payload has tenant and function
// only.
// covers: C5
TEST_F(Notifications, DeadLetterNotifiesOnInsertAndUpdate) {
  fail_one("a");
  wait_for("dead_letter_inserted", 1);
  fail_one("b");
  wait_for("dead_letter_inserted", 2);
  const auto letters = one_->list_dead_letters({}).value().entries;
  ASSERT_EQ(letters.size(), 1u) << "the second failure updates the first one's dead letter";
  EXPECT_EQ(letters[0].count, 2u);
  const std::string org = PgClient(url()).ask_one("SELECT latchkey.name_uuid('acme')");
  const std::string payload = R"({"orgId" : ")" + org + R"(", "integrationType" : "f"})";
  EXPECT_EQ(all_of("dead_letter_inserted"), (std::vector<std::string>{payload, payload}));
  one_->acknowledge({}, letters[0].id, "pat").value();
  EXPECT_EQ(wait_for("dead_letter_inserted", 4).back(), payload) << "acknowledged";
}

// PostgreSQL serializes commits that notify. Programs that notify all the time, on a slow disk, delay no settlement and
// no sweep that inserts a dead letter. The store still sends its notifications.
TEST_F(Notifications, DeadLettersDoNotWaitForNotifyLock) {
  PgCluster server({"fsync=on"});
  constexpr Duration kLease = 1min;
  const auto store = open(server.url(), {.clock = &time_, .patience = 3s});
  Verbs verbs(*store);
  Sql listener(server.url());
  listener.run("LISTEN dead_letter_inserted");
  ClaimRequest doubted = a_claim("doubted", "globex"), expiring = a_claim("expiring", "acme");
  doubted.on_doubt = OnDoubt::hold;
  expiring.retry = {.retries = 0};
  doubted.lease = expiring.lease = kLease;
  const Won of_globex = std::get<Won>(verbs.claim(doubted));
  const Won of_acme = std::get<Won>(verbs.claim(expiring));
  const Won failing = std::get<Won>(verbs.claim(a_claim("failing", "initech")));
  std::atomic<int> notified{0};
  PgClient(server.url()).execute("CREATE TABLE public.noise (n int)");
  std::vector<std::jthread> programs;
  for (int i = 0; i < 4; ++i)
    programs.emplace_back([&](const std::stop_token& enough) {
      PgClient session(server.url());
      // Each commit takes a tenth of a second.
      session.execute("SET commit_delay = 100000; SET commit_siblings = 0");
      for (; !enough.stop_requested(); ++notified)
        session.execute("BEGIN; INSERT INTO public.noise VALUES (1); NOTIFY noise; COMMIT");
    });
  ASSERT_TRUE(wait_until([&] { return notified >= 4; }));
  const auto settled = verbs.settle({{}, failing.run.id(), failing.fence, permanent()});
  ASSERT_TRUE(std::holds_alternative<Settled>(settled)) << "the settlement was delayed";
  EXPECT_TRUE(std::get<Settled>(settled).dead_letter);
  time_.advance(2 * kLease);
  EXPECT_EQ(verbs.sweep().changed, 2u);
  EXPECT_TRUE(store->find({}, of_globex.run.id()).value()->as<InDoubt>());
  EXPECT_TRUE(store->find({}, of_acme.run.id()).value()->as<Failed>());
  programs.clear();
  std::set<std::string> payloads;
  EXPECT_TRUE(wait_until([&] {
    for (const std::string& one : listener.notifications()) payloads.insert(one);
    return payloads.size() == 2;
  }));
}

// A commit that notifies fails if PostgreSQL's queue is full. From 90 % on, the store and the SQL functions send no
// notifications, and all changes are committed. The test replaces PostgreSQL's function for the queue's usage.
TEST_F(Notifications, FullQueueSkipsNotifications) {
  PgClient admin(url());
  const std::string usage = "pg_catalog.pg_notification_queue_usage()";
  admin.execute("ALTER FUNCTION " + usage + " RENAME TO true_queue_usage");
  const auto set_usage = [&](const std::string& full) {
    admin.execute("CREATE OR REPLACE FUNCTION " + usage + " RETURNS float8 LANGUAGE sql AS 'SELECT " + full +
                  "::float8'");
    one_ = open(url());  // a session caches the plan of a function that it has called
    two_.reset();
  };
  int jobs = 0;
  for (const auto& [full, expected] : {std::pair{"0.95", 0u}, {"0.9", 0u}, {"0.89", 1u}, {"0.1", 1u}}) {
    SCOPED_TRACE(full);
    set_usage(full);
    const std::string name(full);
    const std::size_t letters = all_of("dead_letter_inserted").size();
    fail_one(name);
    EXPECT_EQ(count_by_sql("SELECT latchkey.fail_run(run, fence, 'm') FROM latchkey.begin_run('g', '" + name +
                           "', retries => 0)"),
              0u);
    EXPECT_EQ(
        admin.ask_one("SELECT count(*) FROM latchkey.all_states s JOIN latchkey.runs r USING (seq) WHERE s.status "
                      "= 4 AND convert_from(r.key, 'UTF8') = '" +
                      name + "'"),
        "2");
    one_.reset();  // sends the pending notifications
    EXPECT_EQ(all_of("dead_letter_inserted").size() - letters, 2 * expected) << "from the store and from SQL";
    EXPECT_EQ(count_by_sql("SELECT latchkey.enqueue('f')"), expected);
    EXPECT_EQ(count_by([](Store& store) { Verbs(store).enqueue({.function = "f"}); }), expected);
    jobs += 2;
    EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.all_states WHERE status = 0"), std::to_string(jobs));
  }
  admin.execute("DROP FUNCTION " + usage +
                "; ALTER FUNCTION pg_catalog.true_queue_usage() RENAME TO "
                "pg_notification_queue_usage");
}

// The connection for notifications is terminated before the second enqueue. The store does not notify of that job, and
// a worker takes it. (No part of Latchkey listens yet: workers poll.)
TEST_F(Notifications, TakeNeedsNoNotification) {
  one().enqueue({.function = "f", .input = "notified"});
  wait_for("latchkey_work", 1);
  ASSERT_EQ(two().take({.functions = {"f"}, .limit = 9, .session = id_of(5)}).size(), 1u);
  PgClient admin(url());
  ASSERT_EQ(admin.ask_one("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND query LIKE '%latchkey_work%' AND query LIKE '%pg_notify%' AND pid <> "
                          "pg_backend_pid()"),
            "1");
  one().enqueue({.function = "f", .input = "not notified"});
  const auto taken = two().take({.functions = {"f"}, .limit = 9, .session = id_of(5)});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].run.head->input, "not notified");
  // The store notifies of the next job again.
  for (int i = 0; i < 100 && wait_for("latchkey_work", 1).size() < 2; ++i)
    one().enqueue({.function = "f", .input = "n"});
  wait_for("latchkey_work", 2);
}

}  // namespace
}  // namespace latchkey
