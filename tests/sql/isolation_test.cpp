// Each writing function under REPEATABLE READ and SERIALIZABLE: if a row has changed since the snapshot, the call fails
// with 40001 and its retry gets the right reply. Without a change, the call succeeds.
#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

class SqlIsolation : public SqlTest, public ::testing::WithParamInterface<const char*> {
 protected:
  SqlIsolation() { admin.run("INSERT INTO latchkey.members VALUES ('default', 'jo', 'org-admin')"); }

  static std::string owned(Sql& sql, const std::string& key) {
    const auto won = sql.row("SELECT run, fence FROM latchkey.begin_run('f', '" + key + "', retries => 0)");
    return "'" + *won[0] + "', " + *won[1];
  }
  static std::string fail(const std::string& run) {
    return "SELECT dead_letter FROM latchkey.fail_run(" + run + ", 'no')";
  }
  // Takes a snapshot before `change`; then the statement fails. Returns the reply of the retry.
  Value after(const std::string& change, const std::string& statement) {
    begin();
    first.run(change);
    EXPECT_EQ(refusal(second, statement).state, "40001") << statement;
    second.run("ROLLBACK");
    begin();
    const Value said = second.one(statement);
    second.run("COMMIT");
    return said;
  }
  void begin() {
    second.run("BEGIN ISOLATION LEVEL " + std::string(GetParam()) + "; SELECT count(*) FROM latchkey.members");
  }

  Sql first = service("default");
  Sql second = service("default");
};

TEST_P(SqlIsolation, FailureRetriesAfterNewDeadLetter) {
  const std::string other = owned(first, "a"), own = owned(second, "b");
  const Value letter = after(fail(other), fail(own));
  EXPECT_EQ(admin.rows("SELECT id, count FROM latchkey.dead_letters"), (Rows{{letter, "2"}}));
}

TEST_P(SqlIsolation, FailureRetriesAfterDeadLetterGrew) {
  first.run(fail(owned(first, "opens")));
  const std::string other = owned(first, "a"), own = owned(second, "b");
  const Value letter = after(fail(other), fail(own));
  EXPECT_EQ(admin.rows("SELECT id, count FROM latchkey.dead_letters"), (Rows{{letter, "3"}}));
}

TEST_P(SqlIsolation, FailureRetriesAfterAcknowledgement) {
  const Value closed = first.one(fail(owned(first, "opens")));
  const std::string own = owned(second, "b");
  const Value letter = after("SELECT latchkey.acknowledge_dlq_entry('" + *closed + "', 'jo')", fail(own));
  EXPECT_NE(letter, closed);
  EXPECT_EQ(admin.rows("SELECT id, count, acknowledged_by FROM latchkey.dead_letters ORDER BY number"),
            (Rows{{closed, "1", "jo"}, {letter, "1", ""}}));
}

TEST_P(SqlIsolation, AcknowledgementRetriesAfterChange) {
  const Value letter = first.one(fail(owned(first, "opens")));
  admin.run("INSERT INTO latchkey.members VALUES ('default', 'al', 'org-admin')");
  const auto by = [&](const std::string& who) {
    return "SELECT acknowledged_by FROM latchkey.acknowledge_dlq_entry('" + *letter + "', '" + who + "')";
  };
  begin();
  EXPECT_EQ(second.one(by("al")), "al") << "nothing has happened since";
  second.run("ROLLBACK");
  const std::string joins = fail(owned(first, "joins"));
  begin();
  first.run(joins);
  EXPECT_EQ(refusal(second, by("al")).state, "40001") << "the dead letter has a member that the snapshot lacks";
  second.run("ROLLBACK");
  EXPECT_EQ(after(by("jo"), by("al")), "jo") << "the first acknowledgement remains";
}

TEST_P(SqlIsolation, TransitionRetriesAfterTransition) {
  first.run(
      "SELECT latchkey.declare_transition('door', 'open', 'close', 'closed'); SELECT "
      "latchkey.declare_transition('door', 'closed', 'lock', 'locked')");
  const auto move = [](const std::string& entity, const std::string& action) {
    return "SELECT changed FROM latchkey.transition('door', '" + entity + "', '" + action + "', start => 'open')";
  };
  EXPECT_EQ(after(move("new", "close"), move("new", "close")), "f") << "made and moved since";
  EXPECT_EQ(after(move("new", "lock"), move("new", "lock")), "f");
  begin();
  first.run(move("other", "close"));
  EXPECT_EQ(second.one(move("own", "close")), "t") << "another entity changed";
  second.run("COMMIT");
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.entity_moves"), "4");
}

TEST_P(SqlIsolation, EnqueueRetriesAfterPredecessorEnded) {
  const std::string run = owned(first, "a"), id = run.substr(0, run.find(','));
  const std::string job = "SELECT run FROM latchkey.enqueue('g', after => ARRAY[" + id + "]::uuid[])";
  const Value made = after("SELECT latchkey.complete_run(" + run + ")", job);
  EXPECT_EQ(admin.row("SELECT r.id, s.waiting_for FROM latchkey.runs r JOIN latchkey.states s USING (seq) WHERE "
                      "r.function = 'g'"),
            (std::vector<Value>{made, "0"}));
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.waits"), "0");
  // A run that was created after the snapshot is unknown to it.
  begin();
  const std::string later = owned(first, "later");
  EXPECT_EQ(
      refusal(second, "SELECT latchkey.enqueue('g', after => ARRAY[" + later.substr(0, later.find(',')) + "]::uuid[])")
          .detail,
      "PREDECESSOR_UNKNOWN");
}

// The settlement would not see a dependent that was enqueued after its snapshot.
TEST_P(SqlIsolation, SettlementRetriesAfterNewDependent) {
  const std::string run = owned(second, "a"), id = run.substr(0, run.find(','));
  EXPECT_EQ(after("SELECT latchkey.enqueue('g', after => ARRAY[" + id + "]::uuid[])",
                  "SELECT status FROM latchkey.complete_run(" + run + ")"),
            "completed");
  EXPECT_EQ(admin.one("SELECT s.waiting_for FROM latchkey.states s WHERE s.function = 'g'"), "0");
}

TEST_P(SqlIsolation, HeartbeatRetriesAfterBlockChange) {
  const Value job = first.one("SELECT run FROM latchkey.enqueue('f', 'k')");
  // The job's row becomes a block, as if a worker had taken it.
  admin.run(
      "INSERT INTO latchkey.blocks SELECT seq, seq, tenant, function, 0, 0, 7000, at, at + 3600000, 3600000, "
      "gen_random_uuid() FROM latchkey.states; DELETE FROM latchkey.states");
  const std::string fence = *admin.one("SELECT fence_from + lo FROM latchkey.blocks");
  const std::string beat = "SELECT cancel FROM latchkey.heartbeat('" + *job + "', " + fence + ")";
  begin();
  EXPECT_EQ(second.one(beat), "f") << "nothing has happened since";
  second.run("ROLLBACK");
  begin();
  admin.run("UPDATE latchkey.blocks SET lease_until = lease_until + 1000");
  EXPECT_EQ(refusal(second, beat).state, "40001") << "extended";
  second.run("ROLLBACK");
  begin();
  admin.run(
      "INSERT INTO latchkey.outcomes SELECT lo, hi, tenant, fence_from, started_at, started_at + 1, '' FROM "
      "latchkey.blocks; DELETE FROM latchkey.blocks");
  EXPECT_EQ(refusal(second, beat).state, "40001") << "settled";
  second.run("ROLLBACK");
  begin();
  EXPECT_EQ(refusal(second, beat).detail, "LEASE_LOST");
}

INSTANTIATE_TEST_SUITE_P(Levels, SqlIsolation, ::testing::Values("REPEATABLE READ", "SERIALIZABLE"),
                         [](const auto& level) {
                           return std::string(level.param[0] == 'R' ? "Repeatable" : "Serial");
                         });

}  // namespace
}  // namespace latchkey
