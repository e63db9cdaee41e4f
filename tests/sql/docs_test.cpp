// The program that docs/sql.md shows, run unchanged by psql.
#include <gmock/gmock.h>

#include <fstream>
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

}  // namespace
}  // namespace latchkey
