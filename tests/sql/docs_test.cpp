// The SQL that README.md and docs/sql.md show, run unchanged by psql.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "sql/sql_fixture.hpp"
#include "support/postgres/pg_program.hpp"
#include "support/process.hpp"

namespace latchkey {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SqlDocs : public SqlTest {
 protected:
  SqlDocs() {
    admin.run("CREATE TABLE payments (what text, amount integer); GRANT ALL ON payments TO " + role_ +
              "; GRANT latchkey_service TO " + role_);
  }
  ~SqlDocs() override { admin.run("DROP TABLE payments"); }

  static std::string shown() {
    std::stringstream page;
    page << std::ifstream(LATCHKEY_SOURCE_DIR "/docs/sql.md").rdbuf();
    const std::string text = page.str();
    const std::size_t from = text.find("```sql\n", text.find("## An effect that happens once")) + 7;
    return text.substr(from, text.find("```", from) - from);
  }
  // Returns the program's output.
  std::string run_psql(const std::string& program) const {
    Process psql({.arguments = {pg_program("psql"), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", url_as(role_)},
                  .environment = {}});
    psql.write(program);
    EXPECT_EQ(psql.finish(), 0) << psql.err;
    EXPECT_EQ(psql.err, "");
    return psql.out;
  }

  const std::string role_ = make_role("payer");
};

TEST_F(SqlDocs, ProgramRunAgainHasOneEffect) {
  const std::string program = shown();
  ASSERT_THAT(program, AllOf(HasSubstr("latchkey.begin_run"), HasSubstr("INSERT INTO payments"), HasSubstr("COMMIT;")));
  EXPECT_THAT(run_psql(program), AllOf(HasSubstr("INSERT 0 1"), HasSubstr("completed"), HasSubstr("COMMIT")));
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(run_psql(program),
                AllOf(HasSubstr("replayed {\"paid\": true}"), HasSubstr("COMMIT"), Not(HasSubstr("INSERT"))));
  EXPECT_EQ(admin.rows("SELECT what, amount FROM payments"), (Rows{{"order-7", "100"}}));

  // While another caller owns the key, the program does nothing and reports no error.
  admin.run("TRUNCATE payments, latchkey.runs, latchkey.states, latchkey.keys");
  Sql other = service("default");
  other.run("SELECT latchkey.begin_run('pay', 'order-7')");
  EXPECT_THAT(run_psql(program), AllOf(HasSubstr("busy"), Not(HasSubstr("INSERT"))));
  EXPECT_EQ(admin.one("SELECT count(*) FROM payments"), "0");
}

// The SQL blocks of a page, in order.
std::vector<std::string> find_sql_blocks(const std::string& file) {
  std::stringstream page;
  page << std::ifstream(LATCHKEY_SOURCE_DIR "/" + file).rdbuf();
  const std::string text = page.str(), fence = "```sql\n";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(fence); at != text.npos; at = text.find(fence, at)) {
    at += fence.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

// The objects of a user before the blocks of docs/sql.md: tables and roles.
constexpr const char* kSqlPageSetUp = R"(
  CREATE TABLE alert_instances (tenant_id text, alert_config_id text, external_object_id text, created_at timestamptz, status text);
  CREATE TABLE decision_cards (tenant_id text, alert_instance_id text, metric_code text, period_start date, status text);
)";

TEST_F(SqlDocs, ReadmeProgramSettlesItsKey) {
  admin.run("CREATE TABLE charges (what text, cents integer); GRANT ALL ON charges TO " + role_);
  const auto blocks = find_sql_blocks("README.md");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_THAT(run_psql(blocks[0]), AllOf(HasSubstr("INSERT 0 1"), HasSubstr("completed"), HasSubstr("COMMIT")));
  EXPECT_THAT(run_psql(blocks[0]), AllOf(HasSubstr("COMMIT"), Not(HasSubstr("INSERT"))));
  EXPECT_EQ(admin.rows("SELECT what, cents FROM charges"), (Rows{{"order-42", "1999"}}));
  admin.run("DROP TABLE charges");
}

// Each block must run, or is in the list with a reason. Roles belong to the cluster, so each block is rolled back.
TEST_F(SqlDocs, EveryBlockOfTheSqlPageRuns) {
  const std::map<std::string, std::string> not_here{{"\\gset", "a program of psql: ProgramRunAgainHasOneEffect"}};
  const auto blocks = find_sql_blocks("docs/sql.md");
  ASSERT_GE(blocks.size(), 5u);
  for (const std::string& block : blocks) {
    if (std::ranges::any_of(not_here, [&](const auto& known) { return block.contains(known.first); })) continue;
    SCOPED_TRACE(block);
    const bool calls_functions = block.starts_with("SELECT latchkey.");
    Sql session = calls_functions ? service("default") : connect();
    session.run("BEGIN");
    if (!calls_functions) session.run(kSqlPageSetUp);
    if (block.contains("acme_app")) session.run("CREATE ROLE acme_app");  // the reader's own role
    EXPECT_NO_THROW(session.run(block));
    session.run("ROLLBACK");
  }
}

TEST_F(SqlDocs, WindowOfAThousandYearsIsForever) {
  Sql session = service("default");
  session.run("SELECT latchkey.begin_run('store', 'k', window_span => '1000 years')");
  session.run("SELECT latchkey.begin_run('store', 'longer', window_span => '5000 years')");
  EXPECT_EQ(admin.rows("SELECT DISTINCT window_ms FROM latchkey.runs"), (Rows{{"31557600000000"}}));
  EXPECT_EQ(refusal(session, "SELECT latchkey.begin_run('store', 'k2', window_span => '11 years')").state, "LK400");
  for (const char* character : {"\\0080", "\\009f", "\\007f", "\\0009"})
    EXPECT_EQ(refusal(session, std::string("SELECT latchkey.begin_run('store', U&'a") + character + "b')").state,
              "LK400");
  EXPECT_EQ(session.one("SELECT status FROM latchkey.begin_run('store', U&'a\\00a0b')"), "won");
}

}  // namespace
}  // namespace latchkey
