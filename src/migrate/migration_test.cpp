#include "migrate/migration.hpp"

#include <gmock/gmock.h>

#include "migrate/new_migration.hpp"
#include "migrate/own_schema.hpp"
#include "migrate/pg_connect.hpp"
#include "migrate/sql_script.hpp"
#include "migrate/sqlite_text.hpp"
#include "migrate/verify.hpp"

namespace latchkey::migrate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kPlan =
    "change: x\nsteps: [run: down]\ndata_loss_risk: none\nestimated_time: 1 s\nverification_queries: [SELECT 1]\n"
    "dependencies: []\n";

std::vector<File> three(const std::string& label, const std::string& up = "SELECT 1") {
  return {{label + ".up.sql", up}, {label + ".down.sql", "SELECT 2"}, {label + ".plan.yml", kPlan}};
}

Collection gather(const std::vector<std::string>& labels) {
  std::vector<File> files;
  for (const auto& label : labels)
    for (File& file : three(label)) files.push_back(std::move(file));
  return arrange(files);
}

TEST(Migrations, AreOrderedByNumber) {
  const auto all = gather({"10_c", "2_b", "1_a", "9_x", "8_x", "7_x", "6_x", "5_x", "4_x", "3_x"});
  EXPECT_EQ(to_string(all.faults), "");
  EXPECT_EQ(all.migrations.front().label, "1_a");
  EXPECT_EQ(all.migrations.back().label, "10_c");
}

TEST(Migrations, AllFaultsOfTheFilesAreReported) {
  auto files = three("0001_a");
  for (const File& file : three("0003_c")) files.push_back(file);
  for (const File& file : three("003_d")) files.push_back(file);
  files.push_back({"0004_e.up.sql", ""});
  files.push_back({"notes.txt", ""});
  files.push_back({"005_add_down.sql", ""});
  const std::string messages = to_string(arrange(files).faults);
  EXPECT_THAT(messages, HasSubstr("0003_c: there is a gap between it and 0001_a"));
  EXPECT_THAT(messages, HasSubstr("003_d.up.sql: its number is that of 0003_c, too"));
  EXPECT_THAT(messages, HasSubstr("0004_e.down.sql: is missing"));
  EXPECT_THAT(messages, HasSubstr("0004_e.plan.yml: is missing"));
  EXPECT_THAT(messages, HasSubstr("005_add_down.sql: is not named"));
  EXPECT_EQ(messages.find("notes.txt"), messages.npos);
}

TEST(Migrations, DatesHaveNoGaps) { EXPECT_TRUE(gather({"20260206_a", "20260301_b"}).faults.empty()); }

TEST(Migrations, TheNextNumberIsAsWideAsTheLast) {
  const Instant now = parse_rfc3339("2026-02-06T10:11:12.345Z").value();
  const auto next = [&](const std::vector<std::string>& labels) {
    return compute_next_number(gather(labels).migrations, now);
  };
  EXPECT_EQ(next({}), "0001");
  EXPECT_EQ(next({"0001_a", "0002_b"}), "0003");
  EXPECT_EQ(next({"9_a"}), "10");
  EXPECT_EQ(next({"20250101_a"}), "20260206");
  EXPECT_EQ(next({"20260206_a"}), "20260207");
  EXPECT_EQ(next({"20250101000000_a"}), "20260206101112");
}

TEST(Migrations, APlanIsCalledAsItsFile) {
  auto files = three("1_a");
  EXPECT_EQ(arrange(files).migrations[0].plan_file, "1_a.plan.yml");
  files[2].name = "1_a.plan.yaml";
  EXPECT_EQ(arrange(files).migrations[0].plan_file, "1_a.plan.yaml");
}

TEST(OwnSchema, NeedsPostgreSQL15) {
  EXPECT_FALSE(find_too_old(150000));
  EXPECT_FALSE(find_too_old(180001));
  EXPECT_THAT(find_too_old(140009).value(), HasSubstr("needs PostgreSQL 15 or later; this is 14.9"));
}

TEST(Migrations, ChecksumIgnoresLineEnds) {
  const auto sum = [](const std::string& text) { return arrange(three("1_a", text)).migrations[0].checksum; };
  EXPECT_EQ(sum("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum("a\r\nb"), sum("a\nb"));
  EXPECT_NE(sum("a\nb"), sum("a b"));
}

TEST(Migrations, SurveyReportsEveryState) {
  const auto files = gather({"1_a", "2_b", "3_c", "4_d", "5_e"}).migrations;
  const std::string sum = files[0].checksum;
  std::vector<std::string> states;
  for (const Entry& entry :
       survey(files, {{1, "a", sum, ""}, {2, "b", "other", ""}, {4, "d", sum, ""}, {9, "z", sum, ""}}))
    states.push_back(entry.label + " " + std::string(to_string(entry.state)));
  EXPECT_THAT(states, ElementsAre("1_a applied", "2_b changed", "3_c out_of_order", "4_d applied", "5_e out_of_order",
                                  "0009_z unknown"));
}

TEST(Migrations, LatchkeysOwnHaveNoFaults) {
  const Collection& own = own_migrations();
  EXPECT_EQ(to_string(own.faults), "");
  ASSERT_GE(own.migrations.size(), 1u);
  for (const Migration& one : own.migrations) {
    EXPECT_EQ(to_string(lint_script(one.up_file(), one.up)), "");
    EXPECT_EQ(to_string(lint_script(one.down_file(), one.down)), "");
  }
}

TEST(OwnSchema, IsJudgedByItsLedger) {
  const auto files = gather({"1_a", "2_b"}).migrations;
  const std::string sum = files[0].checksum;
  const Applied one{1, "a", sum, ""}, two{2, "b", sum, ""}, three{3, "c", sum, ""}, other{2, "b", "other", ""};
  EXPECT_EQ(judge(files, {}, HasSchema::no).state, SchemaState::empty);
  EXPECT_EQ(judge(files, {}, HasSchema::yes).state, SchemaState::foreign);
  EXPECT_EQ(judge(files, {one}, HasSchema::yes).state, SchemaState::older);
  EXPECT_EQ(judge(files, {one, two}, HasSchema::yes).state, SchemaState::current);
  EXPECT_EQ(judge(files, {one, two, three}, HasSchema::yes).state, SchemaState::newer);
  EXPECT_EQ(judge(files, {one, other}, HasSchema::yes).state, SchemaState::changed);
  EXPECT_EQ(judge(files, {two}, HasSchema::yes).state, SchemaState::changed);  // 1 was never applied
}

TEST(SqliteText, SameMeaningIsSameText) {
  const std::string plain = normalise_sqlite("CREATE TABLE t(a INTEGER,b TEXT DEFAULT 'x  y')");
  EXPECT_EQ(normalise_sqlite("CREATE TABLE \"t\" (\n  a INTEGER, -- first\n  b TEXT DEFAULT 'x  y' /* c */\n)"), plain);
  EXPECT_NE(normalise_sqlite("CREATE TABLE t(a INTEGER,b TEXT DEFAULT 'x y')"), plain);
  EXPECT_EQ(normalise_sqlite("CREATE TABLE \"a b\"(c)"), "CREATE TABLE\"a b\"(c)");
}

TEST(Verify, DifferencesAreLines) {
  EXPECT_FALSE(compare("a\nb\n", "b\na\n"));
  const auto difference = compare("a\nb\n", "b\nc\n");
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->missing, ElementsAre("a"));
  EXPECT_THAT(difference->extra, ElementsAre("c"));
}

}  // namespace
}  // namespace latchkey::migrate
