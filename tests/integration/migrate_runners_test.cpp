// Several runners at once, and runners that die: each migration is applied once or not at all.
#include <signal.h>

#include <thread>

#include "integration/migrate_fixture.hpp"

namespace latchkey {
namespace {

class MigrateRunners : public MigrateTest {
 protected:
  // Fails if it were applied twice, and leaves a row each time.
  void add_counted(int count) {
    add("0001_log", "CREATE TABLE log (version integer);\n", "DROP TABLE log;\n");
    for (int i = 2; i <= count; ++i)
      add("000" + std::to_string(i) + "_step", "INSERT INTO log VALUES (" + std::to_string(i) + ");\n",
          "DELETE FROM log WHERE version = " + std::to_string(i) + ";\n");
  }
  // One that makes a table and then does not come to its end.
  std::string endless() const {
    return is_postgres()
               ? "CREATE TABLE half (id integer);\nSELECT pg_sleep(600);\n"
               : "CREATE TABLE half (id integer);\nWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                 "SELECT count(*) FROM n;\n";
  }
  // Until it is in the middle of its file.
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
    // Locked for reading too: it is exclusive, not somebody who looks.
    while (begin() != SQLITE_BUSY || !is_locked()) std::this_thread::yield();
    sqlite3_close(handle);
  }
};

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

TEST_P(MigrateRunners, ASecondOneWaitsAndSaysSoWhenItGivesUp) {
  add("0001_half", endless(), "DROP TABLE half;\n");
  const auto first = start(words("up"));
  wait_until_inside();
  const Answer second = migrate("up", {"--wait", "50ms"});
  EXPECT_EQ(second.exit, 75);
  EXPECT_THAT(second.err, HasSubstr("another runner is at it: waiting"));
  EXPECT_THAT(second.err, HasSubstr("MIGRATION_LOCKED"));
  first->signal(SIGKILL);
  EXPECT_EQ(first->finish(), 128 + SIGKILL);
}

TEST_P(MigrateRunners, OneThatIsKilledLeavesNothingBehind) {
  add("0001_before", "CREATE TABLE before_it (id integer);\n", "DROP TABLE before_it;\n");
  add("0002_half", endless(), "DROP TABLE half;\n");
  const auto runner = start(words("up"));
  EXPECT_EQ(runner->read_line(), "0001_before applied");
  wait_until_inside();
  runner->signal(SIGKILL);
  EXPECT_EQ(runner->finish(), 128 + SIGKILL);
  // It was never applied: it may be written anew. The lock goes as soon as the database sees that nobody is there.
  write("0002_half.up.sql", "CREATE TABLE half (id integer);\n");
  const Answer next = migrate("up", {"--wait", "30s"});
  EXPECT_EQ(next.exit, 0) << next.err;
  EXPECT_EQ(next.out, "0002_half applied\n");
  EXPECT_EQ(applied(), "1 2");
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateRunners, testing::Values(Kind::postgres, Kind::sqlite),
                         [](const auto& one) { return one.param == Kind::postgres ? "PostgreSQL" : "SQLite"; });

}  // namespace
}  // namespace latchkey
