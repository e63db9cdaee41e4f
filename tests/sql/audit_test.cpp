// The audit log in the database: the engine's role, which every server uses, can append to it and read it. It cannot
// change an entry, and it deletes only entries that are older than 30 days.
#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

class SqlAudit : public SqlTest {
 protected:
  SqlAudit() {
    engine.run("SET ROLE latchkey_engine");
    add(1, "0");
    add(2, "(extract(epoch FROM now() - interval '31 days') * 1000)::bigint");
    add(3, "(extract(epoch FROM now() - interval '29 days') * 1000)::bigint");
    add(4, "(extract(epoch FROM now()) * 1000)::bigint");
  }
  void add(int number, const std::string& at) {
    engine.run("INSERT INTO latchkey.audit VALUES (" + std::to_string(number) + ", gen_random_uuid(), " + at +
               ", 'pat', 'put', 'function', 'f', '', '', '{}')");
  }
  Rows numbers() { return admin.rows("SELECT number FROM latchkey.audit ORDER BY number"); }

  Sql engine{url_};
};

TEST_F(SqlAudit, EngineDeletesOnlyOldEntries) {
  engine.run("DELETE FROM latchkey.audit");
  EXPECT_EQ(numbers(), (Rows{{"3"}, {"4"}}));
}

TEST_F(SqlAudit, EngineChangesNoEntry) {
  for (const char* write : {"UPDATE latchkey.audit SET actor = 'x'", "SELECT FROM latchkey.audit FOR UPDATE",
                            "TRUNCATE latchkey.audit", "ALTER TABLE latchkey.audit DISABLE ROW LEVEL SECURITY",
                            "DROP POLICY purge ON latchkey.audit", "DELETE FROM latchkey.catalog"})
    EXPECT_EQ(refusal(engine, write).state, "42501") << write;
  EXPECT_EQ(numbers().size(), 4u);
}

// The store's time may be ahead of the database's. The floor rises with the mark that servers share.
TEST_F(SqlAudit, FloorFollowsTheStoresClock) {
  admin.run("SELECT setval('latchkey.clock', (extract(epoch FROM now() + interval '2 days') * 1000)::bigint)");
  engine.run("DELETE FROM latchkey.audit");
  EXPECT_EQ(numbers(), (Rows{{"4"}}));
}

}  // namespace
}  // namespace latchkey
