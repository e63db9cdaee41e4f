// Migration files: created by `latchkey migrate new`, checked without a database, accepted after a change. Also the
// examples of the documentation.
#include "migrate/migrate_fixture.hpp"

namespace latchkey {
namespace {

class MigrateFiles : public MigrateTest {
 protected:
  std::string text_of(const std::string& path) const {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  Answer make(const std::string& name, Words flags = {}) const {
    Words all{"migrate", "new", name, "--dir", dir()};
    all.insert(all.end(), flags.begin(), flags.end());
    return call(all);
  }
  // Fills in the fields of a new plan, as its author would.
  void fill(const std::string& label, const std::string& queries) const {
    std::string text = text_of(dir() + "/" + label + ".plan.yml");
    for (const auto& [name, value] :
         {std::pair("change:", "x"), std::pair("data_loss_risk:", "none"), std::pair("estimated_time:", "5 minutes"),
          std::pair("verification_queries:", queries.c_str())}) {
      const std::size_t at = text.find(std::string("\n") + name);
      ASSERT_NE(at, text.npos) << name;
      text.insert(at + 1 + std::string(name).size(), std::string(" ") + value);
    }
    write(label + ".plan.yml", text);
  }
};

TEST_P(MigrateFiles, NewFilesAreNumberedWithEmptyPlans) {
  std::filesystem::remove(dir());
  const Answer made = make("add_users");
  EXPECT_EQ(made.exit, 0) << made.err;
  const std::string path = dir() + "/0001_add_users";
  EXPECT_EQ(made.out, "made " + path + ".up.sql\nmade " + path + ".down.sql\nmade " + path + ".plan.yml\n");
  const Answer empty = call({"migrate", "plan", "--dir", dir()});
  EXPECT_EQ(empty.exit, 65);
  for (const char* name : {"change", "data_loss_risk", "estimated_time", "verification_queries"})
    EXPECT_THAT(empty.err, HasSubstr("`" + std::string(name) + "` must be ")) << empty.err;
  EXPECT_EQ(migrate("up").exit, 65) << "a migration with an empty plan is not applied";
  fill("0001_add_users", "[SELECT count(*) FROM sqlite_schema]");
  write("0001_add_users.up.sql", "CREATE TABLE users (id INTEGER PRIMARY KEY);\n");
  write("0001_add_users.down.sql", "DROP TABLE users;\n");
  EXPECT_EQ(call({"migrate", "plan", "--dir", dir()}).exit, 0);
  const Answer verified = migrate("verify");
  EXPECT_EQ(verified.exit, 0) << verified.err;
  EXPECT_THAT(make("more", {"--json"}).out,
              HasSubstr(R"({"migration":"0002_more","version":2,"files":[")" + dir() + R"(/0002_more.up.sql",)"));
}

TEST_P(MigrateFiles, NewFilesGetUnusedNames) {
  ASSERT_EQ(make("a").exit, 0);
  const std::string before = text_of(dir() + "/0001_a.plan.yml");
  const Answer again = make("a");
  EXPECT_EQ(again.exit, 2);
  EXPECT_THAT(again.err, HasSubstr("USAGE: there is 0001_a already"));
  for (const char* bad : {"", "a b", "../a", "ä", "_a", "a.up"}) {
    const Answer refused = make(bad);
    EXPECT_EQ(refused.exit, 2) << bad;
    EXPECT_THAT(refused.err, HasSubstr("letters, digits")) << bad;
  }
  EXPECT_EQ(call({"migrate", "new", "b"}).exit, 2) << "without --dir, the new migration would be one of Latchkey's own";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir()), {}), 3);
  write("0002_b.plan.yml", "mine");  // an incomplete migration uses this number
  EXPECT_THAT(make("c").out, HasSubstr("/0003_c.up.sql\n"));
  EXPECT_EQ(text_of(dir() + "/0002_b.plan.yml"), "mine");
}

TEST_P(MigrateFiles, ScriptsAreCheckedWithoutDatabase) {
  add("0001_a",
      "CREATE TABLE a (id integer);\nCREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET id = 2; SELECT 1; END;\n",
      "DROP TABLE a;\n");
  const Answer good = call({"migrate", "plan", "--dir", dir()});
  EXPECT_EQ(good.exit, 0) << good.err;
  add("0002_b", "CREATE TABLE b (id integer);\nCOMMIT;\n", "DROP TABLE b;\n");
  const Answer bad = call({"migrate", "plan", "--dir", dir()});
  EXPECT_EQ(bad.exit, 65);
  EXPECT_THAT(bad.err, HasSubstr("0002_b.up.sql:2: `COMMIT` would end the migration's own transaction"));
}

TEST_P(MigrateFiles, InvalidUtf8IsRejectedBeforeAnyChange) {
  add("0001_a", "CREATE TABLE a (id integer);\n", "DROP TABLE a;\n");
  add("0002_b", "CREATE TABLE b (id integer);\n-- f\xc3\xbcr\n-- f\xfcr\n", "DROP TABLE b;\n-- cut \xe2\x82");
  for (const Words& words : {Words{"up", "--database", database()}, {"plan"}}) {
    Words all{"migrate"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--dir", dir()});
    const Answer refused = call(all);
    EXPECT_EQ(refused.exit, 65) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("MIGRATION_INVALID"));
    EXPECT_THAT(refused.err, HasSubstr("0002_b.up.sql:3: has bytes that are no UTF-8"));
    EXPECT_THAT(refused.err, HasSubstr("0002_b.down.sql:2: has bytes that are no UTF-8"));
  }
  EXPECT_FALSE(has_table("a")) << "the earlier migration was not applied either";
  write("0002_b.up.sql",
        "CREATE TABLE b (id integer);\n-- f\xc3\xbcr B\xc3\xbc"
        "cher\n");
  write("0002_b.down.sql", "DROP TABLE b;\n");
  EXPECT_EQ(migrate("up").exit, 0);
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateFiles, testing::Values(Kind::sqlite), [](const auto&) { return "SQLite"; });

class MigrateAccept : public MigrateTest {};

TEST_P(MigrateAccept, AcceptRecordsTheChangedFile) {
  add_tables(2);
  ASSERT_EQ(migrate("up", {"--to", "1"}).exit, 0);
  const std::string since = ask("SELECT applied_at FROM latchkey_migrations");
  write("0001_one.up.sql", "-- the same, said better\nCREATE TABLE one (id integer PRIMARY KEY, name text);\n");
  ASSERT_EQ(migrate("up").exit, 1);
  const Answer unasked = migrate("accept", {"1"});
  EXPECT_EQ(unasked.exit, 2);
  EXPECT_THAT(unasked.err, HasSubstr("accepts the present up file of 1 as the applied one"));
  const Answer accepted = migrate("accept", {"1", "--yes"});
  EXPECT_EQ(accepted.exit, 0) << accepted.err;
  EXPECT_EQ(accepted.out, "0001_one accepted\n");
  EXPECT_EQ(ask("SELECT applied_at FROM latchkey_migrations"), since);
  EXPECT_EQ(migrate("up").out, "0002_two applied\n");
  for (const char* none : {"1", "9"}) {
    const Answer refused = migrate("accept", {none, "--yes"});
    EXPECT_EQ(refused.exit, 1);
    EXPECT_THAT(refused.err, HasSubstr("only a file that changed since it was applied can be accepted"));
  }
  EXPECT_THAT(call({"migrate", "accept", "1", "--yes", "--database", database()}).err, HasSubstr("USAGE: "));
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateAccept, testing::Values(Kind::postgres, Kind::sqlite),
                         [](const auto& one) { return one.param == Kind::postgres ? "PostgreSQL" : "SQLite"; });

class MigrateExamples : public MigrateFiles {};

TEST_P(MigrateExamples, BehaveAsDocumented) {
  const std::string examples = LATCHKEY_SOURCE_DIR "/examples/migrations";
  for (const Words& words : {Words{"plan"}, {"verify"}, {"up"}, {"status", "--exit-code"}, {"down", "--yes"}, {"up"}}) {
    Words all{"migrate"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--dir", examples, "--database", database()});
    const Answer answer = call(all);
    EXPECT_EQ(answer.exit, 0) << words[0] << ": " << answer.err;
  }
  EXPECT_TRUE(has_table("user_preferences"));
  const std::string plan = text_of(examples + "/0002_user_preferences.plan.yml");
  ASSERT_NE(plan, "");
  EXPECT_THAT(text_of(LATCHKEY_SOURCE_DIR "/docs/migrations.md"), HasSubstr("```yaml\n" + plan + "```\n"));
  EXPECT_THAT(text_of(LATCHKEY_SOURCE_DIR "/README.md"),
              HasSubstr("migrate verify --dir examples/migrations --database sqlite:app.db"));
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateExamples, testing::Values(Kind::sqlite),
                         [](const auto&) { return "SQLite"; });

}  // namespace
}  // namespace latchkey
