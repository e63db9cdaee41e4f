// Transactions with one snapshot (REPEATABLE READ, SERIALIZABLE): a row that has changed since fails the call, and no
// reply comes from the old row.
#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

class SqlSnapshots : public SqlTest {
 protected:
  Sql first = service("default");
  Sql second = service("default");
};

// The snapshot has the run as running, but it has completed.
TEST_F(SqlSnapshots, OldSnapshotGivesNoReply) {
  const std::string ask = "SELECT status, result_text FROM latchkey.begin_run('f', 'k')";
  const std::string add = "SELECT status FROM latchkey.enqueue('f', 'k')";
  for (const char* level : {"REPEATABLE READ", "SERIALIZABLE"})
    for (const std::string& call : {ask, add}) {
      SCOPED_TRACE(level + call);
      admin.run("TRUNCATE latchkey.runs, latchkey.states, latchkey.keys");
      const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
      const auto begin = [&] { second.run("BEGIN ISOLATION LEVEL " + std::string(level) + "; SELECT 1"); };
      begin();
      EXPECT_EQ(second.one(call), call == ask ? "busy" : "duplicate") << "nothing has happened since";
      first.run("SET lock_timeout = '2 s'; SELECT latchkey.heartbeat('" + *won[0] + "', " + *won[1] + ")");
      second.run("ROLLBACK");

      begin();
      first.run("SELECT latchkey.complete_run('" + *won[0] + "', " + *won[1] + ", 'r')");
      EXPECT_EQ(refusal(second, call).state, "40001") << "it was running, by the snapshot";
      second.run("ROLLBACK");
      begin();
      EXPECT_EQ(second.one(call), call == ask ? "replayed" : "duplicate");
      second.run("ROLLBACK");
    }
}

// The reply does not wait for another open transaction, which does not make the snapshot old either.
TEST_F(SqlSnapshots, ReplyDoesNotWaitForOtherTransactions) {
  const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  first.run("BEGIN; SELECT latchkey.heartbeat('" + *won[0] + "', " + *won[1] + ")");
  second.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '1 s'");
  EXPECT_EQ(second.one("SELECT code FROM latchkey.begin_run('f', 'k')"), "ALREADY_RUNNING");
  first.run("COMMIT");
  EXPECT_EQ(refusal(second, "SELECT latchkey.begin_run('f', 'k')").state, "40001");
}

// Jobs that a worker took together have one row, the block, which changes with any of them.
TEST_F(SqlSnapshots, ChangedBlockFailsTheCall) {
  const std::string call = "SELECT status FROM latchkey.begin_run('f', 'k1')";
  first.run("SELECT latchkey.enqueue('f', 'k1'); SELECT latchkey.enqueue('f', 'k2')");
  admin.run(
      "INSERT INTO latchkey.blocks SELECT min(seq), min(seq), 'default', 'f', 0, 0 FROM latchkey.states; DELETE FROM "
      "latchkey.states WHERE seq = (SELECT lo FROM latchkey.blocks)");
  second.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_EQ(second.one(call), "busy");
  admin.run(
      "UPDATE latchkey.blocks SET fence_from = 1, started_at = 1, lease_until = 1, lease_ms = 1, session = "
      "gen_random_uuid()");
  EXPECT_EQ(refusal(second, call).state, "40001") << "taken";
  second.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  second.run("SELECT count(*) FROM latchkey.blocks");
  admin.run("DELETE FROM latchkey.blocks");
  EXPECT_EQ(refusal(second, call).state, "40001") << "settled";
}

TEST_F(SqlSnapshots, OwnerDoesNotLoseItsLeaseByASnapshot) {
  const auto old = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  admin.run("UPDATE latchkey.states SET lease_until = at");
  second.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  const auto won = first.row("SELECT run, fence FROM latchkey.begin_run('f', 'k')");
  const auto complete = [&](const Value& fence) {
    return "SELECT status FROM latchkey.complete_run('" + *won[0] + "', " + *fence + ")";
  };
  EXPECT_EQ(refusal(second, complete(won[1])).state, "40001") << "the snapshot has the other fence";
  second.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_EQ(refusal(second, complete(old[1])).detail, "LEASE_LOST");
  second.run("ROLLBACK");
  EXPECT_EQ(second.one(complete(won[1])), "completed");
}

// Another caller's run has inserted the tenant since. That is no reason to retry.
TEST_F(SqlSnapshots, NewTenantRowDoesNotFailTheCall) {
  for (const char* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    admin.run("TRUNCATE latchkey.runs, latchkey.states, latchkey.keys, latchkey.tenants");
    second.run("BEGIN ISOLATION LEVEL " + std::string(level) + "; SELECT count(*) FROM latchkey.job_runs");
    first.run("SELECT latchkey.begin_run('f', 'k1')");
    EXPECT_EQ(second.one("SELECT status FROM latchkey.begin_run('f', 'k2')"), "won") << level;
    EXPECT_EQ(second.one("SELECT status FROM latchkey.enqueue('f', 'k3')"), "enqueued") << level;
    second.run("COMMIT");
    EXPECT_EQ(admin.rows("SELECT name FROM latchkey.tenants"), (Rows{{"default"}}));
  }
}

}  // namespace
}  // namespace latchkey
