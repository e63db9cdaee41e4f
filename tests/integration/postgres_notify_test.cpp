// What is told by NOTIFY beside a live store, and that nothing depends on its being heard.
#include <thread>

#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"
#include "integration/sql_fixture.hpp"

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
    PgClient(url()).execute("NOTIFY " + channel + ", 'the last'");
    auto all = wait_for(channel, 1);
    while (all.back() != "the last") all = wait_for(channel, all.size() + 1);
    all.pop_back();
    return all;
  }
  void fail_one(const std::string& key) {
    const Won won = std::get<Won>(one().claim(a_claim(key, "acme")));
    ASSERT_TRUE(
        std::get<Settled>(one().settle({{}, won.run.id(), won.fence, permanent("a secret reason")})).dead_letter);
  }

  std::unique_ptr<PostgresStore> one_ = open(url()), two_ = open(url());
  Sql listener_{url()};
  std::vector<std::string> heard_;
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
  const auto letters = one_->records().list_dead_letters({}).value().entries;
  ASSERT_EQ(letters.size(), 1u) << "one entry, opened by the first and changed by the second";
  EXPECT_EQ(letters[0].count, 2u);
  const std::string org = PgClient(url()).ask_one("SELECT latchkey.name_uuid('acme')");
  const std::string payload = R"({"orgId" : ")" + org + R"(", "integrationType" : "f"})";
  EXPECT_EQ(all_of("dead_letter_inserted"), (std::vector<std::string>{payload, payload}));
  one_->records().acknowledge({}, letters[0].id, "pat").value();
  EXPECT_EQ(wait_for("dead_letter_inserted", 4).back(), payload) << "acknowledged";
}

// The connection that tells is ended just before: that one is not told of, and is taken all the same.
TEST_F(PostgresNotify, AJobWhoseNotificationIsLostIsTakenByPolling) {
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
