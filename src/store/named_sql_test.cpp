#include "store/named_sql.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey {
namespace {

TEST(NamedSql, TextIsOneLineWithoutComments) {
  const NamedSql sql(
      {"-- Of the file.\n\n-- name: one\n-- Why.\nSELECT 'a  b -- c'\n  -- Why not.\n  FROM t\n\n"
       "-- name: two\nCOMMIT"});
  EXPECT_EQ(sql.find("one"), "SELECT 'a  b -- c' FROM t");
  EXPECT_EQ(sql.find("two"), "COMMIT");
  EXPECT_EQ(sql.all().size(), 2u);
}

TEST(NamedSql, LineBreaksInParenthesesAddNoSpaces) {
  const NamedSql sql({"-- name: one\nSELECT (\n  (SELECT 1)\n  + f(\n    2\n  )\n) FROM t\n"});
  EXPECT_EQ(sql.find("one"), "SELECT ((SELECT 1) + f(2)) FROM t");
}

TEST(NamedSql, TextsOfAnyFileAreNamedInAnyOrder) {
  const NamedSql sql({"-- name: all\nSELECT {columns} FROM {table}; {columns}\n", "-- name: columns\n{first}, b\n",
                      "-- name: first\na\n-- name: table\nt\n"});
  EXPECT_EQ(sql.find("all"), "SELECT a, b FROM t; a, b");
}

TEST(NamedSqlDeathTest, BadNamesAreRefused) {
  EXPECT_DEATH(NamedSql({"-- name: one\na\n", "-- name: one\na\n"}), "named twice: one");
  EXPECT_DEATH(NamedSql({"-- name: one\n{tow}\n-- name: two\na\n"}), "no SQL is named tow");
  EXPECT_DEATH(NamedSql({"-- name: one\n{two}\n-- name: two\n{one}\n"}), "no SQL is named one");
  EXPECT_DEATH(NamedSql({"-- name: one\n{one\n"}), "does not end in the SQL named one");
  EXPECT_DEATH(NamedSql({"-- name: one\na\n"}).find("two"), "no SQL is named two");
}

}  // namespace
}  // namespace latchkey
