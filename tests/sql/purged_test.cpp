// A run that is purged while a call waits for its row: the call finds no run and is rejected.
#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

class SqlPurged : public SqlTest {
 protected:
  // A run that has completed, with a row of its own: its id and its fence.
  std::vector<Value> complete(const std::string& key) {
    const auto begun = user_.row("SELECT run, fence FROM latchkey.begin_run('f', $1)", {key});
    user_.rows("SELECT latchkey.complete_run($1, $2, 'r')", begun);
    return begun;
  }
  // The error of a statement that waits for the run's row while a transaction purges it.
  std::string error_during_purge(const Value& run, const std::string& statement) {
    admin.run("BEGIN");
    for (const char* table : {"states", "settlements", "keys", "runs"})
      admin.rows(std::string("DELETE FROM latchkey.") + table + " WHERE seq = latchkey.counter_of($1)", {run});
    user_.send(statement);
    wait_until_blocked(user_.pid());
    admin.run("COMMIT");
    try {
      user_.fetch();
      return "nothing was refused";
    } catch (const SqlError& error) {
      return error.state;
    }
  }

  Sql user_ = service("acme");
};

TEST_F(SqlPurged, PredecessorIsUnknown) {
  for (const char* mode : {"wait", "skip", "run", "fail"}) {
    const auto gone = complete(mode);
    EXPECT_EQ(error_during_purge(gone[0], "SELECT latchkey.enqueue('f', after => ARRAY['" + *gone[0] +
                                              "']::uuid[], on_failed => '" + mode + "')"),
              "LK422")
        << mode;
  }
  EXPECT_EQ(*admin.one("SELECT count(*) FROM latchkey.runs"), "0") << "a job was made";
}

TEST_F(SqlPurged, HeartbeatLosesTheLease) {
  const auto gone = complete("k");
  EXPECT_EQ(error_during_purge(gone[0], "SELECT latchkey.heartbeat('" + *gone[0] + "', " + *gone[1] + ")"), "LK409");
}

TEST_F(SqlPurged, SettlementLosesTheLease) {
  const auto gone = complete("k");
  EXPECT_EQ(error_during_purge(gone[0], "SELECT latchkey.fail_run('" + *gone[0] + "', " + *gone[1] + ", 'm')"),
            "LK409");
}

}  // namespace
}  // namespace latchkey
