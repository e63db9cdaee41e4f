// `latchkey migrate verify`: up, down and up again on a scratch database finds what a down file forgets.
#include "integration/migrate_fixture.hpp"
#include "migrations/pg_target.hpp"

namespace latchkey {
namespace {

class MigrateVerify : public MigrateTest {};

TEST_P(MigrateVerify, GoodOnesPassAndTheDatabaseIsNotTouched) {
  add_tables(3);
  const Answer good = migrate("verify");
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_EQ(good.out, "3 migrations: up, down and up again lead to the same schema\n");
  EXPECT_EQ(applied(), "no ledger");
  EXPECT_EQ(migrate("verify", {"--json"}).out, "{\"verified\":3}\n");
}

TEST_P(MigrateVerify, ADownThatForgetsAnIndexIsCaught) {
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

TEST_P(MigrateVerify, ADownThatForgetsATableIsCaught) {
  add("0001_a", "CREATE TABLE a (id integer);\nCREATE TABLE b (id integer);\n", "DROP TABLE a;\n");
  EXPECT_THAT(migrate("verify").err, HasSubstr("0001_a.down.sql does not lead back"));
}

TEST_P(MigrateVerify, ADownThatFailsIsNamed) {
  add("0001_a", "CREATE TABLE a (id integer);\n", "DROP TABLE a;\nDROP TABLE nowhere;\n");
  EXPECT_THAT(migrate("verify").err, HasSubstr("MIGRATION_FAILED: 0001_a.down.sql:2: "));
}

TEST_P(MigrateVerify, TheVerificationQueriesAreRun) {
  add_tables(1);
  write("0001_one.plan.yml", plan("  - query: SELECT count(*) FROM one\n    after_up: 7\n"));
  EXPECT_THAT(migrate("verify").err, HasSubstr("CHECK_FAILED: 0001_one.plan.yml:8"));
}

TEST_P(MigrateVerify, ColumnsTriggersAndViewsCount) {
  const std::string trigger =
      is_postgres() ? "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END; $$;\n"
                      "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION f();\n"
                    : "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = 'x'; SELECT 1; END;\n";
  const std::string drop = is_postgres() ? "DROP TRIGGER t ON a;\nDROP FUNCTION f();\n" : "DROP TRIGGER t;\n";
  add("0001_a", "CREATE TABLE a (id integer, b text);\n", "DROP TABLE a;\n");
  add("0002_all", "ALTER TABLE a ADD COLUMN c text DEFAULT 'd';\nCREATE VIEW v AS SELECT id FROM a;\n" + trigger,
      drop + "DROP VIEW v;\nALTER TABLE a DROP COLUMN c;\n");
  EXPECT_EQ(migrate("verify").exit, 0) << migrate("verify").err;
  for (const std::string& kept : {drop, std::string("DROP VIEW v;\n"), std::string("ALTER TABLE a DROP COLUMN c;\n")}) {
    std::string down = drop + "DROP VIEW v;\nALTER TABLE a DROP COLUMN c;\n";
    down.erase(down.find(kept), kept.size());
    write("0002_all.down.sql", down);
    EXPECT_THAT(migrate("verify").err, HasSubstr("VERIFY_FAILED: 0002_all.down.sql")) << kept;
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateVerify, testing::Values(Kind::postgres, Kind::sqlite),
                         [](const auto& one) { return one.param == Kind::postgres ? "PostgreSQL" : "SQLite"; });

class MigrateVerifyPostgres : public MigrateTest {};

TEST_P(MigrateVerifyPostgres, EverythingThatCanBeForgottenIsSeen) {
  PgClient(PgServer::instance().url("postgres"))
      .execute("DO $$ BEGIN CREATE ROLE migrate_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  SystemRandom random;
  migrations::PgTarget target({.database = database()}, random);
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
                         "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO migrate_reader"}) {
    const std::string before = target.describe();
    user.execute(up);
    EXPECT_NE(target.describe(), before) << up;
  }
  // Only the schema is told, not what is in it.
  const std::string before = target.describe();
  user.execute("DROP RULE r ON a; INSERT INTO a VALUES (1, 'x')");
  user.execute("CREATE RULE r AS ON DELETE TO a DO INSTEAD NOTHING");
  EXPECT_EQ(target.describe(), before);
}

TEST_P(MigrateVerifyPostgres, WhoMayMakeNoDatabaseIsToldSo) {
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

TEST_P(MigrateVerifyPostgres, TheLedgerLiesInASchemaOfChoice) {
  add_tables(1);
  const Answer missing = migrate("up", {"--schema", "ops"});
  EXPECT_EQ(missing.exit, 1);
  EXPECT_FALSE(has_table("one"));
  PgClient(database()).execute("CREATE SCHEMA ops");
  EXPECT_EQ(migrate("up", {"--schema", "ops"}).exit, 0);
  EXPECT_EQ(ask("SELECT count(*) FROM ops.latchkey_migrations"), "1");
  EXPECT_EQ(migrate("verify", {"--schema", "ops"}).exit, 0);
}

TEST_P(MigrateVerifyPostgres, ACommitThatHidesBehindAnotherStatementIsNotRun) {
  // To whoever splits by words alone, this function's body has no end.
  add("0001_a",
      "CREATE FUNCTION begin() RETURNS integer LANGUAGE sql AS 'SELECT 1';\nCOMMIT;\nCREATE TABLE a (id integer);\n",
      "SELECT 1;\n");
  EXPECT_THAT(migrate("up").err, HasSubstr("MIGRATION_FAILED: 0001_a.up.sql:1: "));
  EXPECT_EQ(ask("SELECT count(*) FROM pg_proc WHERE proname = 'begin'"), "0");
  EXPECT_FALSE(has_table("a"));
}

TEST_P(MigrateVerifyPostgres, WhatAFileSetsDoesNotReachTheNextOne) {
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

class MigrateSqlite : public MigrateTest {};

TEST_P(MigrateSqlite, ATableIsRebuiltAndForeignKeysAreCheckedAtTheEnd) {
  add("0001_a",
      "CREATE TABLE p (id INTEGER PRIMARY KEY);\nCREATE TABLE c (p INTEGER REFERENCES p (id));\nINSERT INTO p VALUES "
      "(1);\n"
      "INSERT INTO c VALUES (1);\n",
      "DROP TABLE c;\nDROP TABLE p;\n");
  add("0002_rebuild",
      "CREATE TABLE q (id INTEGER PRIMARY KEY);\nINSERT INTO q SELECT id FROM p;\nDROP TABLE p;\nALTER TABLE q RENAME "
      "TO p;\n",
      "SELECT 1;\n");
  EXPECT_EQ(migrate("up").exit, 0);
  EXPECT_EQ(migrate("verify").exit, 0) << migrate("verify").err;
  add("0003_orphan", "DELETE FROM p;\n", "SELECT 1;\n");
  const Answer caught = migrate("up");
  EXPECT_EQ(caught.exit, 1);
  EXPECT_THAT(caught.err, HasSubstr("1 row would break a foreign key"));
  EXPECT_EQ(ask("SELECT count(*) FROM p"), "1");
  write("0003_orphan.up.sql", "PRAGMA foreign_keys = ON;\n");
  EXPECT_THAT(migrate("up").err, HasSubstr("does nothing inside a transaction"));
}

TEST_P(MigrateSqlite, AStoreThatAServerOwnsIsLeftAlone) {
  const auto server = start({"serve", "--listen", "127.0.0.1:0"});
  while (server->read_line().find("http://") == std::string::npos) {
  }
  add_tables(1);
  const Answer refused = call({"migrate", "up", "--dir", dir(), "--database", "sqlite:" + data_dir_ + "/latchkey.db"});
  EXPECT_EQ(refused.exit, 75);
  EXPECT_THAT(refused.err, HasSubstr("STORE_LOCKED"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_EQ(call({"migrate", "up", "--dir", dir(), "--database", "sqlite:" + data_dir_ + "/latchkey.db"}).exit, 0);
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateSqlite, testing::Values(Kind::sqlite), [](const auto&) { return "SQLite"; });

}  // namespace
}  // namespace latchkey
