// Behaviour of SQLite only: rebuilt tables, foreign keys, built-in extensions, and a file that is also a store.
#include <signal.h>

#include "migrate/migrate_fixture.hpp"

namespace latchkey {
namespace {

class MigrateSqlite : public MigrateTest {};

TEST_P(MigrateSqlite, ForeignKeysAreCheckedAfterRebuild) {
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
  EXPECT_THAT(caught.err, HasSubstr("1 row would break a foreign key (c row 1: p in p)"));
  EXPECT_EQ(ask("SELECT count(*) FROM p"), "1");
  write("0003_orphan.up.sql", "PRAGMA foreign_keys = ON;\n");
  EXPECT_THAT(migrate("up").err, HasSubstr("does nothing inside a transaction"));
}

TEST_P(MigrateSqlite, StoreOwnedByServerIsNotChanged) {
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

TEST_P(MigrateSqlite, RepairedRowDoesNotHideABrokenOne) {
  add("0001_a",
      "CREATE TABLE p (id INTEGER PRIMARY KEY);\nCREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p "
      "(id));\n"
      "INSERT INTO p VALUES (1);\nINSERT INTO c VALUES (1, 1);\n",
      "DROP TABLE c;\nDROP TABLE p;\n");
  ASSERT_EQ(migrate("up").exit, 0);
  ask("INSERT INTO c VALUES (2, 7)");  // a program that does not enforce foreign keys can insert this
  add("0002_more", "ALTER TABLE c ADD COLUMN q INTEGER REFERENCES p (id);\nINSERT INTO c VALUES (3, 1, NULL);\n",
      "ALTER TABLE c DROP COLUMN q;\n");
  const Answer old = migrate("up");
  EXPECT_EQ(old.exit, 0) << "the row was broken before the migration: " << old.err;
  add("0003_swap", "UPDATE c SET p = 1 WHERE id = 2;\nUPDATE c SET p = 8 WHERE id = 1;\n", "SELECT 1;\n");
  const Answer caught = migrate("up");
  EXPECT_EQ(caught.exit, 1);
  EXPECT_THAT(caught.err, HasSubstr("1 row would break a foreign key (c row 1: p in p)"));
  EXPECT_EQ(ask("SELECT p FROM c WHERE id = 1"), "1");
}

// SQLite cannot check any row of a table with a mismatched foreign key.
TEST_P(MigrateSqlite, UncheckableKeyBlocksNoOtherTable) {
  ask("CREATE TABLE p (a INTEGER); ");
  ask("CREATE TABLE c (a INTEGER REFERENCES p (a))");
  ask("INSERT INTO c VALUES (1)");
  add_tables(1);
  const Answer up = migrate("up");
  EXPECT_EQ(up.exit, 0) << up.err;
  add("0002_bad", "CREATE TABLE d (a INTEGER REFERENCES p (a));\nINSERT INTO d VALUES (1);\n", "DROP TABLE d;\n");
  const Answer caught = migrate("up");
  EXPECT_EQ(caught.exit, 1);
  EXPECT_THAT(caught.err, HasSubstr("foreign key mismatch - \"d\" referencing \"p\""));
  EXPECT_FALSE(has_table("d"));
}

TEST_P(MigrateSqlite, Fts5RtreeAndMathAreBuiltIn) {
  add("0001_search",
      "CREATE VIRTUAL TABLE pages USING fts5(title, body);\nINSERT INTO pages VALUES ('a', 'keys and latches');\n"
      "CREATE VIRTUAL TABLE places USING rtree(id, x0, x1, y0, y1);\nCREATE TABLE roots (x REAL);\n"
      "INSERT INTO roots VALUES (sqrt(16));\n",
      "DROP TABLE pages;\nDROP TABLE places;\nDROP TABLE roots;\n",
      plan("  - query: SELECT title FROM pages WHERE pages MATCH 'latch*'\n    after_up: a\n"
           "  - query: SELECT x FROM roots\n    after_up: '4.0'\n"));
  for (const char* command : {"verify", "up"}) {
    const Answer good = migrate(command);
    EXPECT_EQ(good.exit, 0) << good.err;
  }
  EXPECT_EQ(migrate("down", {"--yes"}).exit, 0);
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateSqlite, testing::Values(Kind::sqlite), [](const auto&) { return "SQLite"; });

}  // namespace
}  // namespace latchkey
