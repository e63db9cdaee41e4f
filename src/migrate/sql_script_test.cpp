#include "migrate/sql_script.hpp"

#include <gtest/gtest.h>

namespace latchkey::migrate {
namespace {

std::vector<std::string> texts(std::string_view script) {
  std::vector<std::string> all;
  for (const SqlStatement& statement : split_sql(script)) all.push_back(statement.text);
  return all;
}
using Texts = std::vector<std::string>;

TEST(SqlScript, OnlySemicolonsThatEndAStatementSplit) {
  EXPECT_EQ(texts("SELECT 1; SELECT 2"), (Texts{"SELECT 1", "SELECT 2"}));
  EXPECT_EQ(texts("SELECT ';'; SELECT \"a;b\"; SELECT 'it''s;'"),
            (Texts{"SELECT ';'", "SELECT \"a;b\"", "SELECT 'it''s;'"}));
  EXPECT_EQ(texts("SELECT E'\\';'; SELECT 2"), (Texts{"SELECT E'\\';'", "SELECT 2"}));
  EXPECT_EQ(texts("SELECT 'back\\'; SELECT 2"), (Texts{"SELECT 'back\\'", "SELECT 2"}));
  EXPECT_EQ(texts("DO $$ BEGIN; COMMIT; END $$; SELECT 2"), (Texts{"DO $$ BEGIN; COMMIT; END $$", "SELECT 2"}));
  EXPECT_EQ(texts("DO $a$ ; $$ ; $b$ ; $a$; SELECT 2"), (Texts{"DO $a$ ; $$ ; $b$ ; $a$", "SELECT 2"}));
  EXPECT_EQ(texts("PREPARE p AS SELECT $1; SELECT a$b$c"), (Texts{"PREPARE p AS SELECT $1", "SELECT a$b$c"}));
  EXPECT_EQ(texts("-- one; two\nSELECT 1 /* a; /* b; */ c; */ + 1; -- end;\n ;; "),
            (Texts{"SELECT 1 /* a; /* b; */ c; */ + 1"}));
  EXPECT_EQ(texts(""), Texts{});
}

TEST(SqlScript, TheBodyOfAnSqlFunctionIsOneStatement) {
  const std::string function =
      "CREATE OR REPLACE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 0 THEN 1 END; SELECT 2; END";
  EXPECT_EQ(texts(function + "; COMMIT"), (Texts{function, "COMMIT"}));
}

TEST(SqlScript, NamesLikeBeginOpenNoBody) {
  for (const std::string function :
       {"CREATE FUNCTION f(begin timestamptz, \"end\" timestamptz) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION f(begin atomic) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION begin() RETURNS TABLE (begin int, atomic int) LANGUAGE sql AS 'SELECT 1, 2'",
        "CREATE PROCEDURE p(begin int) BEGIN ATOMIC SELECT t.begin, t.end AS case FROM t; SELECT 1 AS end; END",
        "CREATE TRIGGER t BEFORE UPDATE OF begin ON a FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE TABLE function (begin int, atomic int)"})
    EXPECT_EQ(texts(function + "; COMMIT"), (Texts{function, "COMMIT"}));
}

TEST(SqlScript, TheBodyOfATriggerIsSqlites) {
  const std::string script =
      "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = CASE b WHEN 1 THEN 2 END; SELECT 1; "
      "END;\nVACUUM;";
  EXPECT_EQ(split_sql(script, Dialect::sqlite).size(), 2u);
  EXPECT_EQ(lint_script("f.sql", script).size(), 2u);
  EXPECT_EQ(to_string(lint_for_any("f.sql", script)), to_string(lint_script("f.sql", script, Dialect::sqlite)));
  EXPECT_TRUE(to_string(lint_for_any("f.sql", script)).starts_with("f.sql:2: `VACUUM"));
}

TEST(SqlScript, StatementsKnowTheirLines) {
  const auto statements = split_sql("-- a\n\nSELECT\n1;\n/* b\n */ SELECT 2;");
  ASSERT_EQ(statements.size(), 2u);
  EXPECT_EQ(statements[0].line, 3);
  EXPECT_EQ(statements[1].line, 6);
}

TEST(SqlScript, StatementsThatEndTheTransactionAreFound) {
  for (const char* bad :
       {"COMMIT", "begin", "BEGIN WORK", "START TRANSACTION", "END", "ROLLBACK", "ABORT", "PREPARE TRANSACTION 'x'",
        "/* c */ commit work", "VACUUM t", "CREATE INDEX CONCURRENTLY i ON t (a)",
        "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "DROP INDEX CONCURRENTLY i", "REINDEX TABLE CONCURRENTLY t",
        "CREATE DATABASE d", "ALTER SYSTEM SET x = 1", "COPY t FROM STDIN", "\\connect other"})
    EXPECT_TRUE(find_untransactional(bad)) << bad;
  for (const char* good :
       {"SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "CREATE TABLE commit_log (a int)",
        "SELECT 'COMMIT'", "CREATE INDEX i ON t (a)", "PREPARE p AS SELECT 1", "COPY t TO '/tmp/x'"})
    EXPECT_FALSE(find_untransactional(good)) << good;
  for (const char* copy : {"copy t (a, b, c, d, e, f, g, h) from stdin", "COPY t TO STDOUT (FORMAT csv)"})
    EXPECT_TRUE(find_untransactional(copy)) << copy;
  const auto faults = lint_script("f.sql", "SELECT 1;\nCOMMIT;\nBEGIN;");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].line, 2);
  EXPECT_EQ(faults[1].line, 3);
}

}  // namespace
}  // namespace latchkey::migrate
