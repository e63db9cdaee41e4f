// What is told by NOTIFY beside a live store, and that nothing depends on its being heard.
#include <thread>

#include "conformance/store_test.hpp"
#include "sql/sql_fixture.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresNotify : public PostgresStores {
 protected:
  PostgresNotify() { listener_.run("LISTEN latchkey_work; LISTEN dead_letter_inserted"); }
  Verbs one() { return Verbs(*one_); }
  Verbs two() { return Verbs(*two_); }

  // All that came on that channel so far, once there are `least`.
  std::vector<std::string> wait_for(const std::string& channel, std::size_t least) {
    for (const Duration patience = clock_.elapsed() + kPatience; clock_.elapsed() < patience;
         std::this_thread::yield()) {
      for (const std::string& one : listener_.notifications()) heard_.push_back(one);
      std::vector<std::string> of_channel;
      for (const std::string& one : heard_)
        if (one.starts_with(channel + " ")) of_channel.push_back(one.substr(channel.size() + 1));
      if (of_channel.size() >= least) return of_channel;
    }
    ADD_FAILURE() << "nothing on " << channel;
    return {};
  }
  // Notifications come in the order of their commits: behind this one there is nothing of before.
  std::vector<std::string> all_of(const std::string& channel) {
    const std::string last = "last " + std::to_string(++asked_);
    PgClient(url()).execute("NOTIFY " + channel + ", '" + last + "'");
    auto all = wait_for(channel, 1);
    while (!all.empty() && all.back() != last) all = wait_for(channel, all.size() + 1);
    std::erase_if(all, [](const std::string& payload) { return payload.starts_with("last "); });
    return all;
  }
  // How often work is told of by a store that does nothing but `act`, from its opening to its end: it tells a moment
  // after its commits, at the latest when it is closed.
  std::size_t told_by(auto act) {
    const std::size_t before = all_of("latchkey_work").size();
    {
      const auto store = open(url(), {.clock = &time_});
      act(*store);
    }
    return all_of("latchkey_work").size() - before;
  }
  // The same for a transaction of somebody's own.
  std::size_t told_by_sql(const std::string& statements) {
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
  std::vector<std::string> heard_;
  int asked_ = 0;
  ManualClock time_{clock_.now()};
};

TEST_F(PostgresNotify, WorkIsToldOfAtMostOncePerCommit) {
  std::vector<EnqueueRequest> jobs(500, {.function = "f", .input = "i"});
  one().enqueue_all(jobs);
  wait_for("latchkey_work", 1);
  constexpr std::size_t kMore = 20;
  for (std::size_t i = 0; i < kMore; ++i) one().enqueue({.function = "f", .input = "i"});
  // It is told a moment after its commit: taking all of it takes longer.
  wait_for("latchkey_work", 2);
  const auto commits = std::stoul(PgClient(url()).ask_one("SELECT count(*) FROM latchkey.batches"));
  EXPECT_EQ(commits, 1 + kMore) << "500 in one call are one commit";
  one_.reset();  // tells what it has to tell
  const auto told = all_of("latchkey_work");
  EXPECT_GE(told.size(), 2u);
  EXPECT_LE(told.size(), commits);
  for (const std::string& payload : told) EXPECT_EQ(payload, "");
}

// However many it queued, by whatever it did: once.
TEST_F(PostgresNotify, EveryCommitThatQueuesWorkTellsOfItOnce) {
  EXPECT_EQ(told_by([](Store& store) { Verbs(store).enqueue_all({500, EnqueueRequest{.function = "g"}}); }), 1u);
  EXPECT_EQ(told_by([](Store& store) { Verbs(store).enqueue({.function = "g", .delay = 1h}); }), 1u) << "due later";
}

TEST_F(PostgresNotify, FollowUpsOfASettledRunAreToldOf) {
  std::optional<Won> won;
  EXPECT_EQ(told_by([&](Store& store) { won = std::get<Won>(Verbs(store).claim(a_claim())); }), 0u);
  const std::vector<EnqueueRequest> next(3, EnqueueRequest{.function = "f"});
  EXPECT_EQ(told_by([&](Store& store) {
              Verbs(store).settle({{}, won->run.id(), won->fence, Complete{"r", next}});
            }),
            1u);
  EXPECT_EQ(take(*one_).size(), 3u);
}

TEST_F(PostgresNotify, WhatWaitedForARunIsToldOfWhenItIsReleased) {
  std::optional<Taken> first;
  told_by([&](Store& store) {
    Verbs(store).enqueue({.function = "f"});
    first = take(store).at(0);
  });
  const EnqueueRequest waiting{.function = "f", .after = {first->run.id()}};
  EXPECT_EQ(told_by([&](Store& store) { Verbs(store).enqueue_all({3, waiting}); }), 0u) << "nobody can take them yet";
  EXPECT_EQ(told_by([&](Store& store) {
              Verbs(store).settle({{}, first->run.id(), first->fence, Complete{"r", {}}});
            }),
            1u);
  EXPECT_EQ(take(*one_).size(), 3u);
}

TEST_F(PostgresNotify, WhatAPersonRetriesIsToldOf) {
  std::optional<Uuid> letter;
  std::optional<Taken> one_of;
  told_by([&](Store& store) {
    Verbs(store).enqueue_all({3, EnqueueRequest{.function = "f"}});
    for (const Taken& each : take(store)) {
      one_of = each;
      letter = std::get<Settled>(Verbs(store).settle({{}, each.run.id(), each.fence, permanent()})).dead_letter;
    }
  });
  EXPECT_EQ(told_by([&](Store& store) { Verbs(store).move({{}, one_of->run.id(), RetryByHand{}}); }), 1u);
  EXPECT_EQ(told_by([&](Store& store) {
              EXPECT_TRUE(store.act_on_dead_letter(
                  {.tenant = {}, .dead_letter = *letter, .runs = {}, .move = RetryByHand{}, .by = "pat"}));
            }),
            1u)
      << "the other two";
  EXPECT_EQ(take(*one_).size(), 3u);
}

// In a block, as they were taken together, and in rows of their own, as at their second try.
TEST_F(PostgresNotify, WhatIsQueuedAgainByASweepIsToldOf) {
  told_by([&](Store& store) {
    Verbs(store).enqueue_all({3, EnqueueRequest{.function = "f", .retry = {.first = 0ms}}});
  });
  for (const std::uint32_t attempt : {1u, 2u}) {
    SCOPED_TRACE(attempt);
    EXPECT_EQ(told_by([&](Store& store) {
                const auto taken = take(store, 1min);
                ASSERT_EQ(taken.size(), 3u);
                EXPECT_EQ(taken[0].run.attempt, attempt);
              }),
              0u);
    time_.advance(2min);
    EXPECT_EQ(told_by([&](Store& store) { EXPECT_EQ(Verbs(store).sweep().changed, 3u); }), 1u);
  }
}

TEST_F(PostgresNotify, WhatAWorkerGivesBackIsToldOf) {
  told_by([&](Store& store) { Verbs(store).enqueue({.function = "f"}); });
  EXPECT_EQ(told_by([&](Store& store) {
              const Taken taken = take(store).at(0);
              EXPECT_TRUE(std::get<Settled>(Verbs(store).settle({{}, taken.run.id(), taken.fence, Release{}})).changed);
            }),
            1u);
}

// It was told of when it was planned. Whoever waits for it goes by its time.
TEST_F(PostgresNotify, NothingIsToldWhenARetryBecomesDue) {
  told_by([&](Store& store) {
    Verbs(store).enqueue({.function = "f"});
    const Taken taken = take(store).at(0);
    EXPECT_TRUE(std::get<Settled>(Verbs(store).settle({{}, taken.run.id(), taken.fence, retryable()})).changed);
  });
  EXPECT_EQ(told_by([&](Store& store) { EXPECT_TRUE(take(store).empty()); }), 0u);
  time_.advance(1h);
  EXPECT_EQ(told_by([&](Store& store) {
              EXPECT_EQ(Verbs(store).sweep().changed, 0u);
              EXPECT_EQ(take(store).size(), 1u);
            }),
            0u);
}

// With the commit, once however many they were; not without it.
TEST_F(PostgresNotify, ATransactionThatQueuesWorkTellsOfItOnce) {
  EXPECT_EQ(told_by_sql("SELECT latchkey.enqueue('f') FROM generate_series(1, 5)"), 1u);
  EXPECT_EQ(told_by_sql("BEGIN; SELECT latchkey.enqueue('f'); ROLLBACK"), 0u);
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
  EXPECT_EQ(told_by_sql("BEGIN; SELECT latchkey.complete_run(" + completed + "); ROLLBACK"), 0u);
  EXPECT_EQ(told_by_sql("SELECT latchkey.complete_run(" + completed + ")"), 1u) << "they are released";
  EXPECT_EQ(told_by_sql("SELECT latchkey.complete_run(" + completed + ", if_settled => 'answer')"), 0u)
      << "the same again";
  EXPECT_EQ(told_by_sql("SELECT latchkey.fail_run(" + failed + ", 'm')"), 1u);
  EXPECT_EQ(told_by_sql("BEGIN; SELECT latchkey.complete_run(" + alone +
                        "); SELECT latchkey.enqueue('f'); SELECT latchkey.enqueue('f'); COMMIT"),
            1u);
  EXPECT_EQ(told_by_sql("SELECT latchkey.begin_run('f', 'no work')"), 0u);
}

TEST_F(PostgresNotify, WhatIsNoWorkIsNotToldOf) {
  const Won won = std::get<Won>(one().claim(a_claim()));
  one().settle({{}, won.run.id(), won.fence, Complete{"r", {}}});
  one_.reset();
  EXPECT_TRUE(all_of("latchkey_work").empty());
}

// C5, C8: when the entry is opened, and each time it is changed; whose and what kind, and nothing else.
TEST_F(PostgresNotify, ADeadLetterIsToldOfOnInsertAndOnUpdate) {
  fail_one("a");
  wait_for("dead_letter_inserted", 1);
  fail_one("b");
  wait_for("dead_letter_inserted", 2);
  const auto letters = one_->list_dead_letters({}).value().entries;
  ASSERT_EQ(letters.size(), 1u) << "one entry, opened by the first and changed by the second";
  EXPECT_EQ(letters[0].count, 2u);
  const std::string org = PgClient(url()).ask_one("SELECT latchkey.name_uuid('acme')");
  const std::string payload = R"({"orgId" : ")" + org + R"(", "integrationType" : "f"})";
  EXPECT_EQ(all_of("dead_letter_inserted"), (std::vector<std::string>{payload, payload}));
  one_->acknowledge({}, letters[0].id, "pat").value();
  EXPECT_EQ(wait_for("dead_letter_inserted", 4).back(), payload) << "acknowledged";
}

// Of commits that give notice PostgreSQL lets one happen at a time. Programs that give it all the time, on a disk that
// is slow, hold up no settlement, and no sweep of others' leases, that opens a letter; it is told of all the same.
TEST_F(PostgresNotify, LettersDoNotWaitForOthersWhoGiveNotice) {
  PgCluster server({"fsync=on"});
  constexpr Duration kLease = 1min;
  const auto store = open(server.url(), {.clock = &time_, .patience = 3s});
  Verbs verbs(*store);
  Sql listener(server.url());
  listener.run("LISTEN dead_letter_inserted");
  ClaimRequest doubted = a_claim("doubted", "globex"), given_up = a_claim("given up", "acme");
  doubted.on_doubt = OnDoubt::hold;
  given_up.retry = {.retries = 0};
  doubted.lease = given_up.lease = kLease;
  const Won of_globex = std::get<Won>(verbs.claim(doubted));
  const Won of_acme = std::get<Won>(verbs.claim(given_up));
  const Won failing = std::get<Won>(verbs.claim(a_claim("failing", "initech")));
  std::atomic<int> given{0};
  PgClient(server.url()).execute("CREATE TABLE public.noise (n int)");
  std::vector<std::jthread> programs;
  for (int i = 0; i < 4; ++i)
    programs.emplace_back([&](const std::stop_token& enough) {
      PgClient session(server.url());
      // A tenth of a second for each commit.
      session.execute("SET commit_delay = 100000; SET commit_siblings = 0");
      for (; !enough.stop_requested(); ++given)
        session.execute("BEGIN; INSERT INTO public.noise VALUES (1); NOTIFY noise; COMMIT");
    });
  ASSERT_TRUE(comes_true([&] { return given >= 4; }));
  const auto settled = verbs.settle({{}, failing.run.id(), failing.fence, permanent()});
  ASSERT_TRUE(std::holds_alternative<Settled>(settled)) << "held up";
  EXPECT_TRUE(std::get<Settled>(settled).dead_letter);
  time_.advance(2 * kLease);
  EXPECT_EQ(verbs.sweep().changed, 2u);
  EXPECT_TRUE(store->find({}, of_globex.run.id()).value()->as<InDoubt>());
  EXPECT_TRUE(store->find({}, of_acme.run.id()).value()->as<Failed>());
  programs.clear();
  std::set<std::string> told;
  EXPECT_TRUE(comes_true([&] {
    for (const std::string& one : listener.notifications()) told.insert(one);
    return told.size() == 2;
  }));
}

// A commit that gives notice fails while PostgreSQL's queue is full: from nine tenths on none is given, of work or of
// letters, and what was done stands. How full it seems is said here by a function in the place of PostgreSQL's own.
TEST_F(PostgresNotify, WhileTheQueueIsNearlyFullNothingIsToldAndEverythingIsDone) {
  PgClient admin(url());
  const std::string usage = "pg_catalog.pg_notification_queue_usage()";
  admin.execute("ALTER FUNCTION " + usage + " RENAME TO true_queue_usage");
  const auto seem = [&](const std::string& full) {
    admin.execute("CREATE OR REPLACE FUNCTION " + usage + " RETURNS float8 LANGUAGE sql AS 'SELECT " + full +
                  "::float8'");
    one_ = open(url());  // sessions keep the plans of what they have called
    two_.reset();
  };
  int jobs = 0;
  for (const auto& [full, told] : {std::pair{"0.95", 0u}, {"0.9", 0u}, {"0.89", 1u}, {"0.1", 1u}}) {
    SCOPED_TRACE(full);
    seem(full);
    const std::string name(full);
    const std::size_t letters = all_of("dead_letter_inserted").size();
    fail_one(name);
    EXPECT_EQ(told_by_sql("SELECT latchkey.fail_run(run, fence, 'm') FROM latchkey.begin_run('g', '" + name +
                          "', retries => 0)"),
              0u);
    EXPECT_EQ(
        admin.ask_one("SELECT count(*) FROM latchkey.all_states s JOIN latchkey.runs r USING (seq) WHERE s.status "
                      "= 4 AND convert_from(r.key, 'UTF8') = '" +
                      name + "'"),
        "2");
    one_.reset();  // tells what it has to tell
    EXPECT_EQ(all_of("dead_letter_inserted").size() - letters, 2 * told) << "by the server and by SQL";
    EXPECT_EQ(told_by_sql("SELECT latchkey.enqueue('f')"), told);
    EXPECT_EQ(told_by([](Store& store) { Verbs(store).enqueue({.function = "f"}); }), told);
    jobs += 2;
    EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.all_states WHERE status = 0"), std::to_string(jobs));
  }
  admin.execute("DROP FUNCTION " + usage +
                "; ALTER FUNCTION pg_catalog.true_queue_usage() RENAME TO "
                "pg_notification_queue_usage");
}

// The connection that tells is ended just before: that one is not told of, and is taken all the same. (Nothing of
// Latchkey listens yet: whoever takes asks.)
TEST_F(PostgresNotify, TakingAJobNeedsNoNotification) {
  one().enqueue({.function = "f", .input = "told"});
  wait_for("latchkey_work", 1);
  ASSERT_EQ(two().take({.functions = {"f"}, .limit = 9, .session = id_of(5)}).size(), 1u);
  PgClient admin(url());
  ASSERT_EQ(admin.ask_one("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND query LIKE '%latchkey_work%' AND query LIKE '%pg_notify%' AND pid <> "
                          "pg_backend_pid()"),
            "1");
  one().enqueue({.function = "f", .input = "not told"});
  const auto taken = two().take({.functions = {"f"}, .limit = 9, .session = id_of(5)});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].run.head->input, "not told");
  // The next one is told of again.
  for (int i = 0; i < 100 && wait_for("latchkey_work", 1).size() < 2; ++i)
    one().enqueue({.function = "f", .input = "n"});
  wait_for("latchkey_work", 2);
}

}  // namespace
}  // namespace latchkey
