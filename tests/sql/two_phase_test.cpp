// Two-phase transactions: PREPARE TRANSACTION refuses calls that send a NOTIFY; all others take part.
#include <gmock/gmock.h>

#include "sql/sql_fixture.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {
namespace {

class SqlTwoPhase : public ::testing::Test {
 protected:
  SqlTwoPhase() {
    apply_migrations(admin);
    admin.run("INSERT INTO latchkey.members VALUES ('acme', 'ann', 'org-admin')");
    for (Sql* one : {&session, &other}) one->run("SET app.current_tenant = 'acme'");
    session.run("SELECT latchkey.declare_transition('m', 'a', 'go', 'b')");
  }
  // 'run', fence
  std::string begin(const std::string& key) {
    return *session.one("SELECT quote_literal(run) || ', ' || fence FROM latchkey.begin_run('f', '" + key +
                        "', retries => 0)");
  }
  void prepare(const std::string& call) { session.run("BEGIN; SELECT latchkey." + call + "; PREPARE TRANSACTION 'x'"); }
  Value prepared() { return admin.one("SELECT count(*) FROM pg_prepared_xacts"); }
  // Every row of every table.
  std::string everything() {
    return *admin.one(
        "SELECT string_agg(query_to_xml('SELECT * FROM ' || oid::regclass, true, false, '')::text, '' ORDER BY oid) "
        "FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND relkind = 'r'");
  }

  const PgCluster cluster_{{"max_prepared_transactions=4"}};
  Sql admin{cluster_.url()}, session{cluster_.url()}, other{cluster_.url()};
};

TEST_F(SqlTwoPhase, CallsWithoutNotifyTakeEffectAtCommit) {
  other.run("SET lock_timeout = '200 ms'");
  prepare("begin_run('f', 'k')");
  EXPECT_EQ(prepared(), "1");
  EXPECT_EQ(refusal(other, "SELECT latchkey.begin_run('f', 'k')").state, "55P03")
      << "a second caller waits for the key";
  session.run("ROLLBACK PREPARED 'x'");
  prepare("begin_run('f', 'k')");
  session.run("COMMIT PREPARED 'x'");
  EXPECT_EQ(other.one("SELECT status FROM latchkey.begin_run('f', 'k')"), "busy");
  const std::string own = *admin.one(
      "SELECT quote_literal(r.id) || ', ' || s.fence FROM latchkey.runs r JOIN "
      "latchkey.states s USING (seq)");
  const std::string lease = "SELECT lease_until FROM latchkey.states";
  const Value before = admin.one(lease);
  prepare("heartbeat(" + own + ", '1 hour')");
  EXPECT_EQ(admin.one(lease), before);
  session.run("COMMIT PREPARED 'x'");
  EXPECT_NE(admin.one(lease), before);

  prepare("complete_run(" + own + ", 'paid')");
  session.run("ROLLBACK PREPARED 'x'");
  EXPECT_EQ(admin.one("SELECT status FROM latchkey.all_states"), "1") << "it runs";
  prepare("complete_run(" + own + ", 'paid')");
  session.run("COMMIT PREPARED 'x'");
  EXPECT_EQ(other.row("SELECT status, result_text FROM latchkey.begin_run('f', 'k')"),
            (std::vector<Value>{"replayed", "paid"}));

  prepare("transition('m', 'e', 'go', start => 'a')");
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.entities"), "0");
  session.run("COMMIT PREPARED 'x'");
  EXPECT_EQ(admin.one("SELECT state FROM latchkey.entities"), "b");
}

TEST_F(SqlTwoPhase, CallsThatNotifyAreRefused) {
  const std::string failing = begin("failing"), awaited = begin("awaited"), failed = begin("failed");
  const std::string letter =
      *session.one("SELECT quote_literal(dead_letter) FROM latchkey.fail_run(" + failed + ", 'm')");
  session.run("SELECT latchkey.enqueue('f', after => ARRAY[" + awaited.substr(0, awaited.find(',')) + "]::uuid[])");
  const std::string before = everything();
  for (const std::string& call : {std::string("enqueue('f')"), "fail_run(" + failing + ", 'm')",
                                  "acknowledge_dlq_entry(" + letter + ", 'ann')", "complete_run(" + awaited + ")"}) {
    const SqlError refused = refusal(session, "BEGIN; SELECT latchkey." + call + "; PREPARE TRANSACTION 'x'");
    EXPECT_EQ(refused.state, "0A000") << call;
    EXPECT_THAT(refused.what(), ::testing::HasSubstr("NOTIFY")) << call;
    session.run("ROLLBACK");
    EXPECT_EQ(prepared(), "0") << call;
    EXPECT_EQ(everything(), before) << call;
    session.run("BEGIN; SELECT latchkey." + call + "; ROLLBACK");  // which succeeds without PREPARE
  }
}

}  // namespace
}  // namespace latchkey
