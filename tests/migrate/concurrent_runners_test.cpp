// Concurrent runners, and runners that are killed: each migration is applied once or not at all.
#include <signal.h>

#include <thread>

#include "migrate/migrate_fixture.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_bouncer.hpp"

namespace latchkey {
namespace {

class MigrateRunners : public MigrateTest {
 protected:
  // Each migration adds a row to `log`, so a migration that is applied twice changes the row count.
  void add_counted(int count) {
    add("0001_log", "CREATE TABLE log (version integer);\n", "DROP TABLE log;\n");
    for (int i = 2; i <= count; ++i)
      add("000" + std::to_string(i) + "_step", "INSERT INTO log VALUES (" + std::to_string(i) + ");\n",
          "DELETE FROM log WHERE version = " + std::to_string(i) + ";\n");
  }
  // A migration that creates a table and then never ends.
  std::string endless() const {
    return is_postgres()
               ? "CREATE TABLE half (id integer);\nSELECT pg_sleep(600);\n"
               : "CREATE TABLE half (id integer);\nWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                 "SELECT count(*) FROM n;\n";
  }
  // Returns once the runner is inside its endless migration.
  void wait_until_inside() {
    if (is_postgres())
      return PgClient(database())
          .wait_until(
              "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = "
              "'PgSleep'");
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(database().substr(7).c_str(), &handle), SQLITE_OK);
    const auto begin = [&] { return sqlite3_exec(handle, "BEGIN IMMEDIATE; ROLLBACK", nullptr, nullptr, nullptr); };
    const auto is_locked = [&] {
      return sqlite3_exec(handle, "SELECT 1 FROM sqlite_schema", nullptr, nullptr, nullptr) == SQLITE_BUSY;
    };
    // The runner's transaction is exclusive, so reads are locked out too. A reader's lock would not do that.
    while (begin() != SQLITE_BUSY || !is_locked()) std::this_thread::yield();
    sqlite3_close(handle);
  }
};

// covers: E6
TEST_P(MigrateRunners, SeveralAtOnceApplyEachOnce) {
  add_counted(9);
  database();
  std::vector<std::unique_ptr<Process>> runners;
  for (int i = 0; i < 5; ++i) runners.push_back(start(words("up")));
  std::size_t lines = 0;
  for (const auto& runner : runners) {
    EXPECT_EQ(runner->finish(), 0) << runner->err;
    for (std::size_t at = 0; (at = runner->out.find(" applied\n", at)) != std::string::npos; at += 9) lines += 1;
  }
  EXPECT_EQ(lines, 9u);
  EXPECT_EQ(applied(), "1 2 3 4 5 6 7 8 9");
  EXPECT_EQ(ask("SELECT count(*) FROM log"), "8");
}

TEST_P(MigrateRunners, SecondRunnerWaitsThenReportsTimeout) {
  add("0001_half", endless(), "DROP TABLE half;\n");
  const auto first = start(words("up"));
  wait_until_inside();
  const Answer second = migrate("up", {"--wait", "50ms"});
  EXPECT_EQ(second.exit, 75);
  EXPECT_THAT(second.err, HasSubstr("another migration is running: waiting"));
  EXPECT_THAT(second.err, HasSubstr("MIGRATION_LOCKED"));
  first->signal(SIGKILL);
  EXPECT_EQ(first->finish(), 128 + SIGKILL);
}

TEST_P(MigrateRunners, KilledRunnerLeavesNothingBehind) {
  add("0001_before", "CREATE TABLE before_it (id integer);\n", "DROP TABLE before_it;\n");
  add("0002_half", endless(), "DROP TABLE half;\n");
  const auto runner = start(words("up"));
  EXPECT_EQ(runner->read_line(), "0001_before applied");
  wait_until_inside();
  runner->signal(SIGKILL);
  EXPECT_EQ(runner->finish(), 128 + SIGKILL);
  // The migration was never applied, so its file may change. The lock ends when the database notices the disconnect.
  write("0002_half.up.sql", "CREATE TABLE half (id integer);\n");
  const Answer next = migrate("up", {"--wait", "30s"});
  EXPECT_EQ(next.exit, 0) << next.err;
  EXPECT_EQ(next.out, "0002_half applied\n");
  EXPECT_EQ(applied(), "1 2");
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateRunners, testing::Values(Kind::postgres, Kind::sqlite),
                         [](const auto& one) { return one.param == Kind::postgres ? "PostgreSQL" : "SQLite"; });

// A proxy or a pooler is between the runner and PostgreSQL.
class MigrateBroken : public MigrateRunners {
 protected:
  std::string name() { return database().substr(database().rfind('/') + 1); }
  Answer through(const std::string& url, const std::string& command, Words flags = {}) const {
    Words all{"migrate", command, "--dir", dir(), "--database", url};
    all.insert(all.end(), flags.begin(), flags.end());
    return call(all);
  }
  // A further run applies the rest, each migration once. It waits until all other connections have ended, because a
  // program that starts earlier inherits the proxy's open connection and would wait for itself.
  void finish() {
    PgClient(database()).wait_until("SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()");
    const Answer rest = migrate("up");
    EXPECT_EQ(rest.exit, 0) << rest.err;
    EXPECT_EQ(applied(), "1 2 3");
    EXPECT_EQ(ask("SELECT count(*) FROM log"), "2");
  }
};

// Four runners share two server connections, so every transaction may use another one.
TEST_P(MigrateBroken, PoolerInTransactionModeWorks) {
  add_counted(6);
  const PgBouncer bouncer(PgServer::instance().port(), 2);
  const std::string pooled = bouncer.url(database().substr(database().rfind('/') + 1));
  std::vector<std::unique_ptr<Process>> runners;
  for (int i = 0; i < 4; ++i) runners.push_back(start({"migrate", "up", "--dir", dir(), "--database", pooled}));
  for (const auto& runner : runners) EXPECT_EQ(runner->finish(), 0) << runner->err;
  EXPECT_EQ(applied(), "1 2 3 4 5 6");
  EXPECT_EQ(ask("SELECT count(*) FROM log"), "5");
  EXPECT_EQ(call({"migrate", "down", "--to", "0", "--yes", "--dir", dir(), "--database", pooled}).exit, 0);
  EXPECT_FALSE(has_table("log"));
  const Answer verified = call({"migrate", "verify", "--dir", dir(), "--database", pooled});
  EXPECT_EQ(verified.exit, 0) << verified.err;
}

TEST_P(MigrateBroken, UnknownCommitIsReportedAndRunAgain) {
  add_counted(3);
  database();
  FaultProxy proxy(PgServer::instance().port());
  for (const FaultAt at : {FaultAt::commit_request, FaultAt::commit_reply}) {
    for (std::uint64_t after = 0; after < 3; ++after) {
      proxy.arm({.at = at, .after = after});
      const Answer lost = through(proxy.url(name()), "up");
      EXPECT_EQ(lost.exit, 69);
      EXPECT_THAT(lost.err, HasSubstr("its result is unknown; run it again"));
      finish();
      EXPECT_EQ(migrate("down", {"--to", "0", "--yes"}).exit, 0);
    }
  }
  EXPECT_EQ(proxy.fired(), 6u);
}

TEST_P(MigrateBroken, InterruptedRunContinues) {
  add_counted(3);
  database();
  FaultProxy proxy(PgServer::instance().port());
  std::uint64_t cuts = 0;
  for (std::uint64_t byte = 100;; byte += 211, ++cuts) {
    proxy.arm({.at = FaultAt::byte_request, .after = byte});
    const Answer cut = through(proxy.url(name()), "up");
    if (proxy.fired() == cuts) break;
    // Exit status 0 means that only the Terminate message was lost.
    if (cut.exit != 0) EXPECT_EQ(cut.exit, 69) << "cut at byte " << byte << ": " << cut.err;
    finish();
    EXPECT_EQ(migrate("down", {"--to", "0", "--yes"}).exit, 0);
  }
  EXPECT_GT(cuts, 10u);
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateBroken, testing::Values(Kind::postgres),
                         [](const auto&) { return "PostgreSQL"; });

}  // namespace
}  // namespace latchkey
