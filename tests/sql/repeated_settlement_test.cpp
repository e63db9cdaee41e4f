// A settlement that is sent twice has one effect: after a lost reply to its COMMIT, and when two programs share a
// call_id.
#include "sql/sql_fixture.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_server.hpp"

namespace latchkey {
namespace {

class SqlSettleTwice : public SqlTest {
 protected:
  SqlSettleTwice() {
    role_ = make_role("payer");
    admin.run("GRANT latchkey_service TO " + role_ + "; CREATE TABLE effects (what text); GRANT ALL ON effects TO " +
              role_ + "; ALTER ROLE " + role_ + " SET app.current_tenant = 'acme'");
  }
  ~SqlSettleTwice() override { admin.run("DROP TABLE effects"); }

  Sql through(const FaultProxy& proxy) const {
    const std::string url = proxy.url(url_.substr(url_.rfind('/') + 1));
    return Sql(std::string(url).replace(url.find("latchkey@"), 8, role_));
  }
  static std::string complete(const std::vector<Value>& won, const std::string& more = "") {
    return "SELECT status, changed, result_text FROM latchkey.complete_run('" + *won[0] + "', " + *won[1] + ", 'paid'" +
           more + ")";
  }
  // The transaction with the effect. Callers repeat it until its commit is known, as docs/sql.md says.
  static std::string pay(Sql& sql, const std::vector<Value>& won) {
    try {
      sql.run("BEGIN; INSERT INTO effects VALUES ('order-7')");
      sql.run(complete(won));
      sql.run("COMMIT");
      return "paid";
    } catch (const SqlError& error) {
      if (error.state.empty()) return "unknown";  // the connection is gone
      sql.run("ROLLBACK");
      return error.detail;
    }
  }
  Value effects() { return admin.one("SELECT count(*) FROM effects"); }

  std::string role_;
};

const std::string kBegin = "SELECT run, fence, status FROM latchkey.begin_run('pay', 'order-7')";

TEST_F(SqlSettleTwice, LostCommitReplyLeavesOneEffect) {
  FaultProxy proxy(PgServer::instance().port());
  for (const FaultAt at : {FaultAt::commit_request, FaultAt::commit_reply})
    for (const FaultHow how : {FaultHow::close, FaultHow::reset}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(at)) + " " + std::to_string(static_cast<int>(how)));
      admin.run("TRUNCATE effects, latchkey.runs, latchkey.states, latchkey.keys");
      const auto won = connect(role_).row(kBegin);
      {
        Sql sql = through(proxy);
        proxy.arm({.at = at, .how = how});
        EXPECT_EQ(pay(sql, won), "unknown");
      }
      // The program lives, and sends that transaction again.
      Sql again = connect(role_);
      const bool was_committed = at == FaultAt::commit_reply;
      EXPECT_EQ(pay(again, won), was_committed ? "ALREADY_SETTLED" : "paid");
      EXPECT_EQ(pay(again, won), "ALREADY_SETTLED");
      EXPECT_EQ(effects(), "1");
      EXPECT_EQ(again.row("SELECT status, result_text FROM latchkey.begin_run('pay', 'order-7')"),
                (std::vector<Value>{"replayed", "paid"}));
    }
}

// Both programs get the same fence, as a call_id promises. Only one settles.
TEST_F(SqlSettleTwice, SharedCallIdHasOneEffect) {
  const std::string call =
      "SELECT run, fence, status FROM latchkey.begin_run('pay', 'order-7', call_id => "
      "'11111111-1111-4111-8111-111111111111')";
  Sql first = connect(role_), second = connect(role_);
  const auto won = first.row(call);
  EXPECT_EQ(second.row(call), won);
  first.run("BEGIN; INSERT INTO effects VALUES ('first')");
  second.run("BEGIN; INSERT INTO effects VALUES ('second')");
  first.run(complete(won));
  second.send(complete(won));
  wait_until_blocked(second.pid());
  first.run("COMMIT");
  try {
    second.fetch();
    ADD_FAILURE() << "both settled";
  } catch (const SqlError& error) {
    EXPECT_EQ(error.state, "LK410");
    EXPECT_EQ(error.detail, "ALREADY_SETTLED");
    EXPECT_NE(
        std::string(error.what()).find("completed before by this owner, and nothing of this transaction may be kept"),
        std::string::npos)
        << error.what();
  }
  second.run("COMMIT");  // of a transaction that failed: a rollback
  EXPECT_EQ(admin.rows("SELECT what FROM effects"), (Rows{{"first"}}));
  EXPECT_EQ(pay(second, won), "ALREADY_SETTLED");
  EXPECT_EQ(effects(), "1");
}

TEST_F(SqlSettleTwice, StoredReplyIsReturnedOnRequest) {
  Sql sql = connect(role_);
  const auto won = sql.row(kBegin);
  const std::string answer = ", if_settled => 'answer'";
  EXPECT_EQ(sql.row(complete(won, answer)), (std::vector<Value>{"completed", "t", "paid"}));
  EXPECT_EQ(sql.row(complete(won, answer)), (std::vector<Value>{"completed", "f", "paid"}));
  for (const char* refuse : {"", ", if_settled => 'refuse'", ", if_settled => NULL"})
    EXPECT_EQ(refusal(sql, complete(won, refuse)).detail, "ALREADY_SETTLED") << refuse;
  EXPECT_EQ(refusal(sql, complete(won, ", if_settled => 'ignore'")).detail, "INVALID_ARGUMENT");
  // A repeat gets the stored reply; another outcome or another owner does not.
  EXPECT_EQ(refusal(sql, "SELECT latchkey.fail_run('" + *won[0] + "', " + *won[1] + ", 'no')").detail,
            "ALREADY_SETTLED");
  EXPECT_EQ(refusal(sql, complete({won[0], "7"}, answer)).detail, "LEASE_LOST");
}

TEST_F(SqlSettleTwice, SecondInOneTransactionIsRefused) {
  Sql sql = connect(role_);
  sql.run("BEGIN");
  const auto won = sql.row(kBegin);
  sql.run("INSERT INTO effects VALUES ('order-7')");
  sql.run(complete(won));
  EXPECT_EQ(refusal(sql, complete(won)).detail, "ALREADY_SETTLED");
  sql.run("ROLLBACK");
  EXPECT_EQ(effects(), "0");
  EXPECT_EQ(sql.row(kBegin)[2], "won");
}

// A failure has no effect that could happen twice.
TEST_F(SqlSettleTwice, RepeatedFailureGetsTheSameReply) {
  Sql sql = connect(role_);
  const auto won = sql.row("SELECT run, fence FROM latchkey.begin_run('pay', 'order-7', retries => 0)");
  const std::string fail =
      "SELECT status, dead_letter, changed FROM latchkey.fail_run('" + *won[0] + "', " + *won[1] + ", 'no')";
  const auto first = sql.row(fail);
  EXPECT_EQ(first[2], "t");
  EXPECT_EQ(sql.row(fail), (std::vector<Value>{first[0], first[1], "f"}));
  EXPECT_EQ(admin.one("SELECT count FROM latchkey.dead_letters"), "1");
  EXPECT_EQ(pay(sql, won), "ALREADY_SETTLED");
  EXPECT_EQ(effects(), "0");
}

// Some clients send zeros for a missing call_id. Such calls must not count as one call.
TEST_F(SqlSettleTwice, NilUuidIsNoCallId) {
  const std::string nil = "call_id => '00000000-0000-0000-0000-000000000000'";
  Sql caller = connect(role_);
  const auto begin = [&](const std::string& arguments) {
    return caller.row("SELECT run, status FROM latchkey.begin_run(" + arguments + ")");
  };
  EXPECT_EQ(begin("'f', 'k', " + nil)[1], "won");
  EXPECT_EQ(caller.row("SELECT status, code FROM latchkey.begin_run('f', 'k', " + nil + ")"),
            (std::vector<Value>{"busy", "ALREADY_RUNNING"}));
  EXPECT_NE(begin("'f', guard => 'none', " + nil)[0], begin("'f', guard => 'none', " + nil)[0]);
  EXPECT_EQ(refusal(caller, "SELECT latchkey.begin_run('f', " + nil + ")").detail, "INVALID_ARGUMENT");
  const std::string job = "SELECT run FROM latchkey.enqueue('g', " + nil + ")";
  EXPECT_NE(caller.one(job), caller.one(job));
  const std::string keyed = "SELECT status FROM latchkey.enqueue('g', 'k', " + nil + ")";
  EXPECT_EQ(caller.one(keyed), "enqueued");
  EXPECT_EQ(caller.one(keyed), "duplicate");
  caller.run(
      "SELECT latchkey.declare_transition('light', 'off', 'press', 'on'); SELECT latchkey.declare_transition('light', "
      "'on', 'press', 'off')");
  const std::string press =
      "SELECT state, changed FROM latchkey.transition('light', 'l', 'press', start => 'off', " + nil + ")";
  EXPECT_EQ(caller.row(press), (std::vector<Value>{"on", "t"}));
  EXPECT_EQ(caller.row(press), (std::vector<Value>{"off", "t"}));
}

}  // namespace
}  // namespace latchkey
