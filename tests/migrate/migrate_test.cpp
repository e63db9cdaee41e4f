// `latchkey migrate up | down | status | plan` on PostgreSQL and SQLite.
#include <sys/stat.h>

#include "migrate/migrate_fixture.hpp"

namespace latchkey {
namespace {

class Migrate : public MigrateTest {};

// covers: E6
TEST_P(Migrate, UpAppliesInOrderAndAgainDoesNothing) {
  add_tables(3);
  const Answer first = migrate("up");
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_EQ(first.out, "0001_one applied\n0002_two applied\n0003_three applied\n");
  EXPECT_TRUE(has_table("three"));
  const Answer again = migrate("up");
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.out, "nothing to do\n");
  EXPECT_EQ(applied(), "1 2 3");
}

TEST_P(Migrate, UpToNumberStopsThere) {
  add_tables(3);
  EXPECT_EQ(migrate("up", {"--to", "2", "--json"}).out,
            "{\"migration\":\"0001_one\",\"version\":1,\"state\":\"applied\"}\n"
            "{\"migration\":\"0002_two\",\"version\":2,\"state\":\"applied\"}\n");
  EXPECT_EQ(applied(), "1 2");
}

TEST_P(Migrate, UnknownNumberIsRejected) {
  add_tables(3);
  for (const char* command : {"up", "down"}) {
    const Answer refused = migrate(command, {"--to", "4"});
    EXPECT_EQ(refused.exit, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("USAGE: --to 4: no migration has that number"));
    EXPECT_EQ(applied(), "no ledger");
  }
  EXPECT_EQ(migrate("up", {"--to", "0"}).exit, 2);
}

TEST_P(Migrate, FailedMigrationIsRolledBack) {
  add_tables(3);
  write("0002_two.up.sql",
        "CREATE TABLE two (id integer);\nINSERT INTO one VALUES (1, 'x');\nINSERT INTO nowhere VALUES (1);\n");
  const Answer failed = migrate("up");
  EXPECT_EQ(failed.exit, 1);
  EXPECT_EQ(failed.out, "0001_one applied\n");
  EXPECT_THAT(failed.err, HasSubstr("MIGRATION_FAILED: 0002_two.up.sql:3: "));
  EXPECT_THAT(failed.err, HasSubstr("nowhere"));
  EXPECT_EQ(applied(), "1");
  EXPECT_FALSE(has_table("two"));
  EXPECT_FALSE(has_table("three"));
  EXPECT_EQ(ask("SELECT count(*) FROM one"), "0");
  add_tables(3);
  EXPECT_EQ(migrate("up").out, "0002_two applied\n0003_three applied\n");
}

TEST_P(Migrate, AnAppliedFileThatChangedIsNamed) {
  add_tables(2);
  ASSERT_EQ(migrate("up").exit, 0);
  add_tables(3);
  write("0001_one.up.sql", "CREATE TABLE one (id bigint);\n");
  for (const char* command : {"up", "down"}) {
    const Answer refused = migrate(command, *command == 'd' ? Words{"--to", "0", "--yes"} : Words{});
    EXPECT_EQ(refused.exit, 1);
    EXPECT_THAT(refused.err, HasSubstr("MIGRATION_CHANGED: 0001_one.up.sql"));
    EXPECT_EQ(applied(), "1 2");
  }
}

TEST_P(Migrate, ScriptWithoutAStatementIsAFault) {
  add_tables(1);
  add("0002_empty", "-- to be written\n/* here */ ;\n", "");
  for (const char* command : {"plan", "verify", "up"}) {
    const Answer refused =
        call(std::string(command) == "plan" ? Words{"migrate", "plan", "--dir", dir()} : words(command));
    EXPECT_EQ(refused.exit, 65) << command;
    EXPECT_THAT(refused.err, HasSubstr("0002_empty.up.sql:1: has no statement")) << command;
    EXPECT_THAT(refused.err, HasSubstr("0002_empty.down.sql:1: has no statement")) << command;
  }
  EXPECT_EQ(applied(), "no ledger") << "the SQL that is written later is not a changed file";
}

TEST_P(Migrate, StatusListsEveryState) {
  add_tables(4);
  ASSERT_EQ(migrate("up", {"--to", "3"}).exit, 0);
  write("0001_one.up.sql", "SELECT 1;\n");
  for (const char* ending : {".up.sql", ".down.sql", ".plan.yml"})
    std::filesystem::remove(dir() + "/0003_three" + ending);
  const Answer answer = migrate("status", {"--json"});
  EXPECT_EQ(answer.exit, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr(R"({"migration":"0001_one","version":1,"state":"changed","applied_at":"2)"));
  EXPECT_THAT(answer.out, HasSubstr(R"({"migration":"0002_two","version":2,"state":"applied","applied_at":"2)"));
  EXPECT_THAT(answer.out, HasSubstr(R"({"migration":"0003_three","version":3,"state":"unknown","applied_at":"2)"));
  EXPECT_THAT(answer.out, HasSubstr(R"({"migration":"0004_four","version":4,"state":"pending","applied_at":null})"));
  EXPECT_THAT(answer.err, HasSubstr("0004_four: there is a gap between it and 0002_two"));
  EXPECT_THAT(migrate("status").out, HasSubstr("0004_four   pending"));
}

TEST_P(Migrate, StatusHasAnExitCode) {
  add_tables(2);
  EXPECT_EQ(migrate("status").exit, 0);
  EXPECT_EQ(migrate("status", {"--exit-code"}).exit, 3);
  ASSERT_EQ(migrate("up", {"--to", "1"}).exit, 0);
  EXPECT_EQ(migrate("status", {"--exit-code"}).exit, 3);
  ASSERT_EQ(migrate("up").exit, 0);
  EXPECT_EQ(migrate("status", {"--exit-code"}).exit, 0);
  write("0001_one.up.sql", "SELECT 1;\n");
  const Answer changed = migrate("status", {"--exit-code", "--json"});
  EXPECT_EQ(changed.exit, 3);
  EXPECT_THAT(changed.out, HasSubstr("\"state\":\"changed\""));
}

TEST_P(Migrate, StatusChangesNothing) {
  add_tables(1);
  EXPECT_THAT(migrate("status").out, HasSubstr("0001_one   pending"));
  if (is_postgres())
    EXPECT_EQ(applied(), "no ledger");
  else
    EXPECT_FALSE(std::filesystem::exists(file("app.db")));
}

TEST_P(Migrate, GapsAndLateNumbersAreRefused) {
  add_tables(3);
  for (const char* ending : {".up.sql", ".down.sql", ".plan.yml"})
    std::filesystem::rename(dir() + "/0002_two" + ending, file("two") + ending);
  const Answer gap = migrate("up");
  EXPECT_EQ(gap.exit, 65);
  EXPECT_THAT(gap.err, HasSubstr("MIGRATION_INVALID"));
  EXPECT_THAT(gap.err, HasSubstr("0003_three: there is a gap between it and 0001_one"));
  EXPECT_EQ(applied(), "no ledger");
  for (const char* ending : {".up.sql", ".down.sql", ".plan.yml"})
    std::filesystem::rename(file("two") + ending, dir() + "/0002_two" + ending);
  ASSERT_EQ(migrate("up").exit, 0);
  ask("DELETE FROM latchkey_migrations WHERE version = 2");
  const Answer late = migrate("up");
  EXPECT_EQ(late.exit, 1);
  EXPECT_THAT(late.err, HasSubstr("MIGRATION_ORDER: 0002_two: out of order"));
}

TEST_P(Migrate, AFileWithItsOwnTransactionIsRefused) {
  add("0001_a", "CREATE TABLE a (id integer);\nCOMMIT;\nBEGIN;\nCREATE TABLE b (id integer);\n", "SELECT 1;\n");
  const Answer refused = migrate("up");
  EXPECT_NE(refused.exit, 0);
  EXPECT_THAT(refused.err, HasSubstr("0001_a.up.sql:2: `COMMIT` would end the migration's own transaction"));
  EXPECT_FALSE(has_table("a"));
  EXPECT_FALSE(has_table("b"));
  EXPECT_EQ(applied(), "no ledger");
}

TEST_P(Migrate, NonTransactionalSqlFailsClearly) {
  add("0001_a", "CREATE TABLE a (id integer);\nVACUUM;\n", "SELECT 1;\n");
  const Answer refused = migrate("up");
  EXPECT_NE(refused.exit, 0);
  EXPECT_THAT(refused.err, HasSubstr("0001_a.up.sql:2: "));
  EXPECT_FALSE(has_table("a"));
}

TEST_P(Migrate, DownUndoesOneAndReportsTheRisk) {
  add_tables(3);
  ASSERT_EQ(migrate("up").exit, 0);
  const Answer unasked = migrate("down");
  EXPECT_EQ(unasked.exit, 2);
  EXPECT_THAT(unasked.err, HasSubstr("--yes"));
  EXPECT_EQ(applied(), "1 2 3");
  const Answer one = migrate("down", {"--yes"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_EQ(one.out, "0003_three taken_back\n");
  EXPECT_THAT(one.err, HasSubstr("data-loss risk: minimal; about 5m"));
  EXPECT_FALSE(has_table("three"));
  EXPECT_EQ(migrate("down", {"--steps", "1", "--yes"}).out, "0002_two taken_back\n");
  EXPECT_EQ(migrate("down", {"--to", "0", "--yes"}).out, "0001_one taken_back\n");
  EXPECT_EQ(migrate("down", {"--yes"}).out, "nothing to do\n");
  EXPECT_EQ(migrate("down", {"--to", "1", "--steps", "1"}).exit, 2);
  EXPECT_EQ(migrate("up").out, "0001_one applied\n0002_two applied\n0003_three applied\n");
}

TEST_P(Migrate, WrongNumberHasShortError) {
  add_tables(1);
  for (const Words& wrong :
       {Words{"--steps", "0"}, {"--to", "abc"}, {"--to", "-1"}, {"--to", "1x"}, {"--to", "99999999999999999999"}}) {
    const Answer refused = migrate("down", wrong);
    EXPECT_EQ(refused.exit, 2);
    EXPECT_THAT(refused.err, HasSubstr("`" + wrong[1] + "` is no whole number from "));
    EXPECT_LT(refused.err.size(), 150u) << refused.err;
  }
  EXPECT_EQ(migrate("up", {"--to", "-1"}).exit, 2);
}

TEST_P(Migrate, AFailedDownLeavesItApplied) {
  add_tables(1);
  write("0001_one.down.sql", "DROP TABLE one;\nDROP TABLE nowhere;\n");
  ASSERT_EQ(migrate("up").exit, 0);
  const Answer failed = migrate("down", {"--yes"});
  EXPECT_EQ(failed.exit, 1);
  EXPECT_THAT(failed.err, HasSubstr("MIGRATION_FAILED: 0001_one.down.sql:2: "));
  EXPECT_TRUE(has_table("one"));
  EXPECT_EQ(applied(), "1");
}

// covers: E7
TEST_P(Migrate, OnATerminalEveryStepIsConfirmed) {
  add_tables(1);
  write("0001_one.plan.yml", plan("  - SELECT 1\n", "  - Export the data\n  - run: down\n  - Inform the users\n"));
  ASSERT_EQ(migrate("up").exit, 0);
  {
    Terminal terminal = start_on_terminal(words("down"));
    terminal.read_until("Export the data: done? [y/N] ");
    terminal.type("n\n");
    EXPECT_EQ(terminal.finish(), 1);
    EXPECT_EQ(applied(), "1");
  }
  Terminal terminal = start_on_terminal(words("down"));
  terminal.read_until("Export the data: done? [y/N] ");
  terminal.type("y\n");
  terminal.read_until("data-loss risk: minimal)? [y/N] ");
  terminal.type("y\n");
  EXPECT_THAT(terminal.read_until("now: Inform the users"), HasSubstr("0001_one taken_back"));
  EXPECT_EQ(terminal.finish(), 0);
  EXPECT_FALSE(has_table("one"));
}

TEST_P(Migrate, FailedVerificationQueryRollsBack) {
  const std::string count = "  - query: SELECT count(*) FROM one\n    after_up: 1\n";
  add_tables(1);
  write("0001_one.plan.yml", plan(count));
  const Answer failed = migrate("up");
  EXPECT_EQ(failed.exit, 1);
  EXPECT_THAT(failed.err, HasSubstr("CHECK_FAILED: 0001_one.plan.yml:8: the verification query answers `0`, not `1`"));
  EXPECT_FALSE(has_table("one"));
  write("0001_one.plan.yml", plan("  - SELECT count(*) FROM nowhere\n"));
  EXPECT_THAT(migrate("up").err, HasSubstr("CHECK_FAILED: 0001_one.plan.yml:8: "));
  write("0001_one.up.sql", "CREATE TABLE one (id integer);\nINSERT INTO one VALUES (1);\n");
  write("0001_one.plan.yml", plan(count));
  EXPECT_EQ(migrate("up").exit, 0);
}

// covers: E7
TEST_P(Migrate, RollbackDoesNotChangeOtherTables) {
  add_tables(2);
  write("0002_two.down.sql", "DROP TABLE two;\nDELETE FROM one WHERE id = 2;\n");
  write("0002_two.plan.yml", plan("  - query: SELECT id, name FROM one ORDER BY id\n    unchanged: true\n"));
  ASSERT_EQ(migrate("up").exit, 0);
  ask("INSERT INTO one VALUES (1, 'a'), (2, 'b')");
  const Answer caught = migrate("down", {"--yes"});
  EXPECT_EQ(caught.exit, 1);
  EXPECT_THAT(caught.err, HasSubstr("CHECK_FAILED: 0002_two.plan.yml:8"));
  EXPECT_TRUE(has_table("two"));
  EXPECT_EQ(ask("SELECT count(*) FROM one"), "2");
  write("0002_two.down.sql", "DROP TABLE two;\n");
  EXPECT_EQ(migrate("down", {"--yes"}).exit, 0);
  EXPECT_EQ(ask("SELECT count(*) FROM one"), "2");
}

TEST_P(Migrate, AfterRollbackHasItsOwnQueries) {
  const std::string table = is_postgres() ? "SELECT count(*) FROM pg_class WHERE relname = 'one'"
                                          : "SELECT count(*) FROM sqlite_schema WHERE name = 'one'";
  add_tables(1);
  write("0001_one.plan.yml", plan("  - query: " + table + "\n    after_up: 1\n    after_rollback: 0\n"));
  write("0001_one.down.sql", "SELECT 1;\n");
  ASSERT_EQ(migrate("up").exit, 0);
  EXPECT_THAT(migrate("down", {"--yes"}).err, HasSubstr("CHECK_FAILED"));
  EXPECT_EQ(applied(), "1");
  add_tables(1);
  EXPECT_EQ(migrate("down", {"--yes"}).exit, 0);
}

TEST_P(Migrate, VerificationQueryCannotWrite) {
  add_tables(1);
  write("0001_one.plan.yml", plan("  - WITH x AS (INSERT INTO one VALUES (1, 'a') RETURNING id) SELECT id FROM x\n"));
  EXPECT_THAT(migrate("up").err, HasSubstr("CHECK_FAILED"));
  EXPECT_FALSE(has_table("one"));
}

TEST_P(Migrate, PlanNameMustMatchItsFile) {
  add_tables(1);
  std::filesystem::remove(dir() + "/0001_one.plan.yml");
  write("0001_one.plan.yaml", plan("  - query: SELECT 1\n    after_up: 2\n"));
  EXPECT_THAT(migrate("up").err, HasSubstr("CHECK_FAILED: 0001_one.plan.yaml:8: the verification query answers `1`"));
  write("0001_one.plan.yaml", plan("  - SELECT nowhere\n"));
  EXPECT_THAT(migrate("up").err, HasSubstr("CHECK_FAILED: 0001_one.plan.yaml:8: "));
}

TEST_P(Migrate, EmptyTextCountsAsARow) {
  add_tables(1);
  write("0001_one.up.sql", "CREATE TABLE one (name text);\nINSERT INTO one VALUES ('x'), ('');\n");
  write("0001_one.plan.yml", plan("  - query: SELECT name FROM one ORDER BY name\n    after_up: ['', x]\n"));
  const Answer up = migrate("up");
  EXPECT_EQ(up.exit, 0) << up.err;
}

// covers: E7
TEST_P(Migrate, FaultsOfPlansAreReportedFirst) {
  add_tables(2);
  write("0001_one.plan.yml", "chnage: x\n");
  std::filesystem::remove(dir() + "/0002_two.plan.yml");
  for (const char* command : {"up", "plan", "verify"}) {
    const Answer answer = migrate(command);
    EXPECT_EQ(answer.exit, 65) << command;
    EXPECT_THAT(answer.err, HasSubstr("PLAN_INVALID"));
    EXPECT_THAT(answer.err, HasSubstr("0001_one.plan.yml:1: there is no member `chnage`; did you mean `change`?"));
    EXPECT_THAT(answer.err, HasSubstr("0001_one.plan.yml:1: `data_loss_risk` is missing"));
    EXPECT_THAT(answer.err, HasSubstr("0002_two.plan.yml: is missing"));
  }
  EXPECT_EQ(applied(), "no ledger");
}

TEST_P(Migrate, PlansAreShown) {
  add_tables(1);
  EXPECT_THAT(call({"migrate", "plan", "--dir", dir()}).out, HasSubstr("data-loss risk: minimal; about 5m"));
  EXPECT_THAT(call({"migrate", "plan", "--dir", dir(), "--json"}).out, HasSubstr(R"("dependencies":[])"));
  std::string after = plan();
  const std::string none = "dependencies: []";
  after.replace(after.find(none), none.size(), "dependencies: [The feature is off, No export is running]");
  write("0001_one.plan.yml", after);
  EXPECT_THAT(call({"migrate", "plan", "--dir", dir()}).out,
              HasSubstr("  first:\n    - The feature is off\n    - No export is running\n"));
  EXPECT_THAT(call({"migrate", "plan", "--dir", dir(), "--json"}).out,
              HasSubstr(R"("dependencies":["The feature is off","No export is running"])"));
  write(
      "0001_one.plan.yml",
      plan("  - SELECT 2\n  - {query: SELECT 1, after_up: [1, 2], after_rollback: 0}\n  - {query: SELECT 3, unchanged: "
           "true}\n") +
          "data_changes: [Names are gone]\nverification_steps: [Log in]\n");
  const std::string json = call({"migrate", "plan", "--dir", dir(), "--json"}).out;
  EXPECT_THAT(json,
              HasSubstr(R"("data_loss_risk":"minimal","estimated_time_ms":300000,"steps":["run the down file"])"));
  EXPECT_THAT(json, HasSubstr(R"("data_changes":["Names are gone"])"));
  EXPECT_THAT(json, HasSubstr(R"("verification_queries":[{"query":"SELECT 2"},{"query":"SELECT 1","after_up":"1\n2",)"
                              R"("after_rollback":"0"},{"query":"SELECT 3","unchanged":true}])"));
  EXPECT_THAT(json, HasSubstr(R"("verification_steps":["Log in"])"));
}

TEST_P(Migrate, ByteOrderMarkIsIgnored) {
  add_tables(1);
  const std::string mark = "\xEF\xBB\xBF";
  add("0002_marked", mark + "CREATE TABLE marked (id integer);\n", mark + "DROP TABLE marked;\n", mark + plan());
  const Answer up = migrate("up");
  EXPECT_EQ(up.exit, 0) << up.err;
  write("0002_marked.up.sql", "CREATE TABLE marked (id integer);\n");
  EXPECT_EQ(migrate("up").out, "nothing to do\n") << "without its byte order mark, the file is the same";
  EXPECT_EQ(migrate("down", {"--yes"}).exit, 0);
}

TEST_P(Migrate, NonTextFilesAreRejectedFirst) {
  add_tables(2);
  const auto answer = [&] {
    const Answer refused = migrate("up");
    EXPECT_EQ(refused.exit, 65);
    EXPECT_EQ(applied(), "no ledger");
    return refused.err;
  };
  write("0002_two.up.sql", std::string("SELECT 1;\nSELECT '\0';\n", 22));
  EXPECT_THAT(answer(), HasSubstr("0002_two.up.sql:2: has a NUL byte"));
  write("0002_two.up.sql", std::string("\xFF\xFES\0", 4));
  EXPECT_THAT(answer(), HasSubstr("0002_two.up.sql:1: is UTF-16"));
  const std::string path = dir() + "/0002_two.up.sql";
  std::filesystem::resize_file(path, 65 * 1024 * 1024);
  EXPECT_THAT(answer(), HasSubstr("0002_two.up.sql has more than 64 MiB"));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(answer(), HasSubstr("0002_two.up.sql is no regular file"));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/zero", path);
  EXPECT_THAT(answer(), HasSubstr("0002_two.up.sql is no regular file"));
}

TEST_P(Migrate, CopyFromStdinIsRejected) {
  if (!is_postgres()) return;  // SQLite has no COPY
  add_tables(1);
  for (const char* copy : {"COPY one (id, name) FROM STDIN", "COPY one TO STDOUT",
                           "COPY (SELECT 1, 2, 3, 4, a, b, c, d, e FROM one) TO STDOUT WITH (FORMAT csv)"}) {
    add("0002_copy", "SELECT 1;\n" + std::string(copy) + ";\n", "SELECT 1;\n");
    const Answer refused = migrate("up");
    EXPECT_EQ(refused.exit, 65) << copy;
    EXPECT_THAT(refused.err, HasSubstr("0002_copy.up.sql:2: `COPY … "));
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, Migrate, ::testing::Values(Kind::postgres, Kind::sqlite),
                         [](const auto& one) { return one.param == Kind::postgres ? "PostgreSQL" : "SQLite"; });

class MigrateUsage : public CliTest {};

TEST_F(MigrateUsage, ErrorsNameTheMistake) {
  EXPECT_EQ(call({"migrate", "up"}).exit, 2);
  EXPECT_THAT(call({"migrate", "up", "--database", "mysql://x"}).err, HasSubstr("postgres://… or sqlite:FILE"));
  EXPECT_THAT(call({"migrate", "up", "--database", "sqlite:x"}).err, HasSubstr("say --dir"));
  EXPECT_EQ(call({"migrate", "plan", "--dir", file("nowhere")}).exit, 1);
  const Answer unreachable = call({"migrate", "status", "--database", "postgres://a:secret@127.0.0.1:1/x"});
  EXPECT_EQ(unreachable.exit, 69);
  EXPECT_THAT(unreachable.err, Not(HasSubstr("secret")));
  EXPECT_THAT(call({"migrate", "up", "--dirr", "x"}).err, HasSubstr("did you mean `--dir`?"));
  EXPECT_THAT(call({"migrate", "verify", "--help"}).out, HasSubstr("Example:"));
  EXPECT_THAT(call({"man"}).out, HasSubstr("latchkey migrate verify"));
}

}  // namespace
}  // namespace latchkey
