// `latchkey migrate verify`: up, down and up again on a scratch database finds objects that a down file does not drop.
#include <signal.h>

#include <thread>

#include "migrate/migrate_fixture.hpp"
#include "migrate/pg_target.hpp"

namespace latchkey {
namespace {

class MigrateVerify : public MigrateTest {};

TEST_P(MigrateVerify, ValidFilesPassAndDatabaseIsUnchanged) {
  add_tables(3);
  const Answer good = migrate("verify");
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_EQ(good.out, "3 migrations: up, down and up again lead to the same schema\n");
  EXPECT_EQ(applied(), "no ledger");
  EXPECT_EQ(migrate("verify", {"--json"}).out, "{\"verified\":3}\n");
}

TEST_P(MigrateVerify, DownThatLeavesAnIndexFails) {
  add("0001_a", "CREATE TABLE a (id integer, b text);\n", "DROP TABLE a;\n");
  add("0002_i", "CREATE INDEX a_b ON a (b);\nCREATE INDEX a_id ON a (id);\n", "DROP INDEX a_id;\n");
  const Answer caught = migrate("verify");
  EXPECT_EQ(caught.exit, 1);
  EXPECT_THAT(caught.err,
              HasSubstr("VERIFY_FAILED: 0002_i.down.sql does not lead back to the schema before it\n+ index "));
  EXPECT_THAT(caught.err, HasSubstr("a_b"));
  EXPECT_THAT(caught.err, Not(HasSubstr("a_id")));
  EXPECT_EQ(applied(), "no ledger");
}

TEST_P(MigrateVerify, DownThatLeavesATableFails) {
  add("0001_a", "CREATE TABLE a (id integer);\nCREATE TABLE b (id integer);\n", "DROP TABLE a;\n");
  EXPECT_THAT(migrate("verify").err, HasSubstr("0001_a.down.sql does not lead back"));
}

TEST_P(MigrateVerify, FailingDownIsNamed) {
  add("0001_a", "CREATE TABLE a (id integer);\n", "DROP TABLE a;\nDROP TABLE nowhere;\n");
  EXPECT_THAT(migrate("verify").err, HasSubstr("MIGRATION_FAILED: 0001_a.down.sql:2: "));
}

TEST_P(MigrateVerify, VerificationQueriesAreRun) {
  add_tables(1);
  write("0001_one.plan.yml", plan("  - query: SELECT count(*) FROM one\n    after_up: 7\n"));
  EXPECT_THAT(migrate("verify").err, HasSubstr("CHECK_FAILED: 0001_one.plan.yml:8"));
}

TEST_P(MigrateVerify, LeftColumnsTriggersAndViewsFail) {
  const std::string trigger =
      is_postgres() ? "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END; $$;\n"
                      "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION f();\n"
                    : "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = 'x'; SELECT 1; END;\n";
  const std::string drop = is_postgres() ? "DROP TRIGGER t ON a;\nDROP FUNCTION f();\n" : "DROP TRIGGER t;\n";
  add("0001_a", "CREATE TABLE a (id integer, b text);\n", "DROP TABLE a;\n");
  add("0002_all", "ALTER TABLE a ADD COLUMN c text DEFAULT 'd';\nCREATE VIEW v AS SELECT id FROM a;\n" + trigger,
      drop + "DROP VIEW v;\nALTER TABLE a DROP COLUMN c;\n");
  EXPECT_EQ(migrate("verify").exit, 0) << migrate("verify").err;
  for (const std::string& omitted :
       {drop, std::string("DROP VIEW v;\n"), std::string("ALTER TABLE a DROP COLUMN c;\n")}) {
    std::string down = drop + "DROP VIEW v;\nALTER TABLE a DROP COLUMN c;\n";
    down.erase(down.find(omitted), omitted.size());
    write("0002_all.down.sql", down);
    EXPECT_THAT(migrate("verify").err, HasSubstr("VERIFY_FAILED: 0002_all.down.sql")) << omitted;
  }
}

TEST_P(MigrateVerify, CtrlCDropsTheScratchDatabase) {
  const std::string temporary = file("temporary");
  std::filesystem::create_directory(temporary);
  environment_.push_back("TMPDIR=" + temporary);
  add("0001_slow",
      is_postgres() ? "SELECT pg_sleep(600);\n"
                    : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;\n",
      "SELECT 1;\n");
  const auto verifier = start(words("verify"));
  if (is_postgres())
    PgClient(database())
        .wait_until(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname LIKE 'latchkey\\_verify%' AND wait_event = "
            "'PgSleep'");
  else
    while (std::filesystem::is_empty(temporary)) std::this_thread::yield();
  verifier->signal(SIGINT);
  EXPECT_EQ(verifier->finish(), 128 + SIGINT);
  EXPECT_THAT(verifier->err, HasSubstr(is_postgres() ? "interrupted: removing the scratch database latchkey_verify_"
                                                     : "interrupted: removing the scratch folder " + temporary));
  EXPECT_EQ(verifier->out, "");
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  if (is_postgres()) {
    EXPECT_EQ(ask("SELECT count(*) FROM pg_database WHERE datname LIKE 'latchkey\\_verify%'"), "0");
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateVerify, testing::Values(Kind::postgres, Kind::sqlite),
                         [](const auto& one) { return one.param == Kind::postgres ? "PostgreSQL" : "SQLite"; });

class MigrateVerifyPostgres : public MigrateTest {};

TEST_P(MigrateVerifyPostgres, EveryLeftObjectIsFound) {
  PgClient(PgServer::instance().url("postgres"))
      .execute("DO $$ BEGIN CREATE ROLE migrate_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  SystemRandom random;
  migrate::PgTarget target({.database = database()}, random);
  PgClient user(database());
  user.execute("CREATE TABLE a (id integer PRIMARY KEY, b text)");
  for (const char* up : {"ALTER TABLE a ALTER b SET NOT NULL",
                         "ALTER TABLE a ALTER b SET DEFAULT 'x'",
                         "ALTER TABLE a ALTER b TYPE varchar(9)",
                         "ALTER TABLE a ADD CHECK (id > 0)",
                         "ALTER TABLE a ADD UNIQUE (b)",
                         "ALTER TABLE a ENABLE ROW LEVEL SECURITY",
                         "CREATE POLICY p ON a USING (true)",
                         "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
                         "CREATE VIEW v AS SELECT 1 AS x",
                         "CREATE MATERIALIZED VIEW m AS SELECT 1 AS x",
                         "GRANT SELECT ON a TO migrate_reader",
                         "GRANT UPDATE (b) ON a TO migrate_reader",
                         "CREATE SEQUENCE s",
                         "CREATE TYPE e AS ENUM ('x')",
                         "CREATE DOMAIN d AS integer CHECK (VALUE > 0)",
                         "CREATE SCHEMA other",
                         "COMMENT ON TABLE a IS 'x'",
                         "CREATE STATISTICS st ON id, b FROM a",
                         "CREATE RULE r AS ON DELETE TO a DO INSTEAD NOTHING",
                         "ALTER TABLE a SET (fillfactor = 50)",
                         "ALTER TABLE a ALTER b SET STORAGE EXTERNAL",
                         "ALTER TABLE a ALTER b SET STATISTICS 7",
                         "ALTER TABLE a ALTER b SET (n_distinct = 5)",
                         "ALTER TABLE a ALTER b SET COMPRESSION pglz",
                         "CREATE AGGREGATE total(integer) (SFUNC = int4pl, STYPE = integer)",
                         "CREATE OR REPLACE AGGREGATE total(integer) (SFUNC = int4mul, STYPE = integer)",
                         "CREATE FUNCTION near(e, e) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
                         "CREATE OPERATOR ~~~ (FUNCTION = near, LEFTARG = e, RIGHTARG = e)",
                         "ALTER OPERATOR ~~~ (e, e) SET (RESTRICT = eqsel)",
                         "CREATE FUNCTION to_e(integer) RETURNS e LANGUAGE sql AS $$ SELECT 'x'::e $$",
                         "CREATE CAST (integer AS e) WITH FUNCTION to_e(integer)",
                         "CREATE PUBLICATION pub",
                         "ALTER PUBLICATION pub ADD TABLE a",
                         "ALTER PUBLICATION pub SET (publish = 'insert')",
                         "CREATE COLLATION sorted (LOCALE = 'C')",
                         "CREATE TEXT SEARCH DICTIONARY dict (TEMPLATE = simple)",
                         "ALTER TEXT SEARCH DICTIONARY dict (Accept = false)",
                         "CREATE TEXT SEARCH CONFIGURATION conf (PARSER = default)",
                         "ALTER TEXT SEARCH CONFIGURATION conf ADD MAPPING FOR word WITH dict",
                         "CREATE FOREIGN DATA WRAPPER wrap",
                         "CREATE SERVER far FOREIGN DATA WRAPPER wrap",
                         "ALTER SERVER far OPTIONS (ADD host 'h')",
                         "CREATE FOREIGN TABLE ft (id integer) SERVER far",
                         "ALTER FOREIGN TABLE ft OPTIONS (ADD name 'n')",
                         "CREATE USER MAPPING FOR PUBLIC SERVER far",
                         "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO migrate_reader"}) {
    const std::string before = target.describe();
    user.execute(up);
    EXPECT_NE(target.describe(), before) << up;
  }
  // The comparison covers the schema, not its data.
  const std::string before = target.describe();
  user.execute("DROP RULE r ON a; INSERT INTO a VALUES (1, 'x')");
  user.execute("CREATE RULE r AS ON DELETE TO a DO INSTEAD NOTHING");
  EXPECT_EQ(target.describe(), before);
}

TEST_P(MigrateVerifyPostgres, RoleWithoutCreatedbIsRefused) {
  PgClient admin(PgServer::instance().url("postgres"));
  admin.execute("DROP ROLE IF EXISTS modest; CREATE ROLE modest LOGIN");
  add_tables(1);
  std::string url = database();
  url.replace(url.find("latchkey@"), 9, "modest@");
  const Answer refused = call({"migrate", "verify", "--dir", dir(), "--database", url});
  EXPECT_EQ(refused.exit, 77);
  EXPECT_THAT(refused.err, HasSubstr("SCRATCH_REFUSED"));
  EXPECT_THAT(refused.err, HasSubstr("CREATEDB"));
}

TEST_P(MigrateVerifyPostgres, NoScratchDatabaseIsLeft) {
  add("0001_a", "CREATE TABLE a (id integer);\n", "DROP TABLE nowhere;\n");
  EXPECT_EQ(migrate("verify").exit, 1);
  EXPECT_EQ(ask("SELECT count(*) FROM pg_database WHERE datname LIKE 'latchkey_verify%'"), "0");
}

TEST_P(MigrateVerifyPostgres, LedgerSchemaCanBeChosen) {
  add_tables(1);
  const Answer missing = migrate("up", {"--schema", "ops"});
  EXPECT_EQ(missing.exit, 1);
  EXPECT_FALSE(has_table("one"));
  PgClient(database()).execute("CREATE SCHEMA ops");
  EXPECT_EQ(migrate("up", {"--schema", "ops"}).exit, 0);
  EXPECT_EQ(ask("SELECT count(*) FROM ops.latchkey_migrations"), "1");
  EXPECT_EQ(migrate("verify", {"--schema", "ops"}).exit, 0);
}

TEST_P(MigrateVerifyPostgres, HiddenCommitIsNotRun) {
  // A parser that only splits into words would find no end of this function's body.
  add("0001_a",
      "CREATE FUNCTION hides() RETURNS integer BEGIN ATOMIC SELECT 1 case; END;\nCOMMIT;\nCREATE TABLE a (id "
      "integer);\n",
      "SELECT 1;\n");
  EXPECT_THAT(migrate("up").err, HasSubstr("MIGRATION_FAILED: 0001_a.up.sql:1: "));
  EXPECT_EQ(ask("SELECT count(*) FROM pg_proc WHERE proname = 'hides'"), "0");
  EXPECT_FALSE(has_table("a"));
}

TEST_P(MigrateVerifyPostgres, ParameterMayBeNamedBegin) {
  add("0001_a",
      "CREATE FUNCTION span(begin integer, stop integer) RETURNS integer LANGUAGE sql AS 'SELECT stop - begin';\n"
      "CREATE TABLE a (begin integer);\n",
      "DROP TABLE a;\nDROP FUNCTION span(integer, integer);\n");
  const Answer good = migrate("verify");
  EXPECT_EQ(good.exit, 0) << good.err;
}

TEST_P(MigrateVerifyPostgres, SettingsEndWithTheirFile) {
  add("0001_a",
      "CREATE SCHEMA other;\nSET search_path = other;\nSET ROLE pg_monitor;\nRESET ROLE;\nCREATE TABLE a (id "
      "integer);\n",
      "DROP SCHEMA other CASCADE;\n");
  add("0002_b", "CREATE TABLE b (id integer);\n", "DROP TABLE b;\n");
  EXPECT_EQ(migrate("up").exit, 0);
  EXPECT_TRUE(has_table("b"));
  EXPECT_FALSE(has_table("a"));
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateVerifyPostgres, testing::Values(Kind::postgres),
                         [](const auto&) { return "PostgreSQL"; });

}  // namespace
}  // namespace latchkey
