// SQL functions on runs that a server stores in blocks (ranges of runs): a run leaves its block for a row of its own,
// and the rest of the block does not change.
#include "sql/sql_runs.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class SqlBlocks : public SqlTest {
 protected:
  // Jobs lo..hi of "f", enqueued together as a server would; taken under fences 9000 + seq if `lease_left` says so.
  void put_block(int lo, int hi, std::optional<Duration> lease_left, std::uint32_t retries = 3) {
    const Instant now = database_now(admin);
    for (int seq = lo; seq <= hi; ++seq) {
      RunHead head = a_head();
      head.id = make_uuid_v7(now - 1min, static_cast<std::uint64_t>(seq), 5);
      head.key = "k" + std::to_string(seq);
      head.key_hash = hash_key("default", "f", head.key);
      head.fingerprint.reset();
      head.retry.retries = retries;
      head.created_at = now - 1min;
      ids_[seq] = head.id;
      store_run(admin, a_job_run(Queued{now - 1min}, head));
    }
    const std::string range = std::to_string(lo) + ", " + std::to_string(hi);
    const std::string due = std::to_string(to_ms(now - 1min));
    admin.run("DELETE FROM latchkey.states");
    admin.run("SELECT setval('latchkey.counters', 50001), setval('latchkey.fences', 50001)");
    if (!lease_left) {
      admin.run("INSERT INTO latchkey.blocks (lo, hi, tenant, function, priority, due) VALUES (" + range +
                ", 'default', 'f', 0, " + due + ")");
    } else {
      admin.run("INSERT INTO latchkey.blocks VALUES (" + range + ", 'default', 'f', 0, " + due + ", 9000, " +
                std::to_string(to_ms(now - 30s)) + ", " + std::to_string(to_ms(now + *lease_left)) + ", 60000, '" +
                to_string(id_of(51)) + "')");
    }
  }
  std::string by(int seq) { return "'" + to_string(ids_.at(seq)) + "', " + std::to_string(9000 + seq); }
  Run load(int seq) { return load_run(admin, ids_.at(seq)); }
  std::string blocks() {
    return admin.one("SELECT coalesce(string_agg(lo || '-' || hi, ' ' ORDER BY lo), '') FROM latchkey.blocks")
        .value_or("");
  }
  std::string states() {
    return admin.one("SELECT coalesce(string_agg(seq::text, ' ' ORDER BY seq), '') FROM latchkey.states").value_or("");
  }

  Sql caller = service("default");
  std::map<int, RunId> ids_;
};

TEST_F(SqlBlocks, ARefusalLeavesTheBlockAlone) {
  put_block(1, 5, std::nullopt);
  caller.run("BEGIN");
  EXPECT_EQ(caller.row("SELECT code, run FROM latchkey.begin_run('f', 'k3')"),
            (std::vector<Value>{"ALREADY_QUEUED", to_string(ids_[3])}));
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.enqueue('f', 'k4')"), "duplicate");
  // Meanwhile a server can lock the block.
  Sql server = connect();
  server.run("BEGIN; SET LOCAL ROLE latchkey_engine");
  EXPECT_EQ(server.rows("SELECT lo FROM latchkey.blocks FOR UPDATE NOWAIT").size(), 1u);
  server.run("ROLLBACK");
  caller.run("COMMIT");
  EXPECT_EQ(blocks(), "1-5");
  EXPECT_EQ(states(), "");
}

TEST_F(SqlBlocks, RunningJobsAreBusyUntilTheirLeaseEnds) {
  put_block(1, 3, 10min);
  EXPECT_EQ(caller.one("SELECT code FROM latchkey.begin_run('f', 'k2')"), "ALREADY_RUNNING");
  admin.run("UPDATE latchkey.blocks SET lease_until = started_at + 1");
  EXPECT_EQ(caller.one("SELECT code FROM latchkey.begin_run('f', 'k2')"), "ALREADY_QUEUED");
  EXPECT_EQ(blocks(), "1-3") << "the sweeper's work, not that of a refused call";
}

TEST_F(SqlBlocks, SettledRunLeavesItsBlockAtAnyPosition) {
  put_block(1, 6, 10min);
  const Run before = load(3);
  caller.run("SELECT latchkey.complete_run(" + by(3) + ", 'in the middle')");
  EXPECT_EQ(blocks(), "1-2 4-6");
  caller.run("SELECT latchkey.complete_run(" + by(1) + ", 'first')");
  EXPECT_EQ(blocks(), "2-2 4-6");
  caller.run("SELECT latchkey.fail_run(" + by(2) + ", 'alone')");
  EXPECT_EQ(blocks(), "4-6");
  caller.run("SELECT latchkey.heartbeat(" + by(6) + ", lease => '1 h')");
  EXPECT_EQ(blocks(), "4-5");
  EXPECT_EQ(states(), "1 2 3 6");
  EXPECT_EQ(load(3).as<Completed>()->result, "in the middle");
  EXPECT_EQ(load(3).fence, before.fence);
  EXPECT_EQ(load(3).first_attempt_at, before.first_attempt_at);
  EXPECT_EQ(load(2).as<Queued>()->by, QueuedBy::failed_attempt);
  EXPECT_EQ(load(6).as<Running>()->session, id_of(51));
  for (const int seq : {4, 5}) {
    EXPECT_EQ(load(seq).status(), Status::running);
    EXPECT_EQ(load(seq).fence, static_cast<Fence>(9000 + seq));
  }
  EXPECT_EQ(caller.one("SELECT result_text FROM latchkey.begin_run('f', 'k1')"), "first");
}

TEST_F(SqlBlocks, StaleFenceChangesNothing) {
  put_block(1, 3, 10min);
  for (const char* call : {"complete_run", "heartbeat"})
    EXPECT_EQ(refusal(caller, "SELECT latchkey." + std::string(call) + "('" + to_string(ids_[2]) + "', 77)").detail,
              "LEASE_LOST");
  EXPECT_EQ(blocks(), "1-3");
}

TEST_F(SqlBlocks, LostLastAttemptIsReopenedByTheNextCaller) {
  put_block(1, 3, -1s, 0);
  const auto won = caller.row("SELECT status, run, generation, fence > 9002 FROM latchkey.begin_run('f', 'k2')");
  EXPECT_EQ(won, (std::vector<Value>{"won", to_string(ids_[2]), "2", "t"}));
  EXPECT_EQ(blocks(), "1-1 3-3");
  EXPECT_EQ(admin.row("SELECT seq, code FROM latchkey.dead_letter_members"),
            (std::vector<Value>{"2", "OUTCOME_UNKNOWN"}));
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.enqueue('f', 'k3')"), "enqueued");
  EXPECT_EQ(load(3).generation, 2u);
}

TEST_F(SqlBlocks, AnOutcomeIsReplayedAndStays) {
  put_block(1, 2, 10min);
  admin.run(
      "INSERT INTO latchkey.outcomes SELECT 1, 1, 'default', 9000, started_at, started_at + 500, 'done' FROM "
      "latchkey.blocks; UPDATE latchkey.blocks SET lo = 2");
  EXPECT_EQ(caller.row("SELECT status, result_text FROM latchkey.begin_run('f', 'k1')"),
            (std::vector<Value>{"replayed", "done"}));
  EXPECT_EQ(
      caller.row("SELECT status, changed FROM latchkey.complete_run(" + by(1) + ", 'again', if_settled => 'answer')"),
      (std::vector<Value>{"completed", "f"}));
  for (const char* call : {"complete_run(", "fail_run("})
    EXPECT_EQ(refusal(caller, "SELECT latchkey." + (call + by(1)) + ", 'no')").detail, "ALREADY_SETTLED");
  EXPECT_EQ(states(), "");
}

// A row that returns to an earlier state by a bug cannot be settled twice: the index of settlements rejects it.
TEST_F(SqlBlocks, IndexRejectsSecondSettlement) {
  put_block(1, 3, 10min);
  caller.run("SELECT latchkey.heartbeat(" + by(2) + ")");
  admin.run("CREATE TEMP TABLE before AS SELECT * FROM latchkey.states");
  caller.run("SELECT latchkey.complete_run(" + by(2) + ", 'first')");
  admin.run("DELETE FROM latchkey.states; INSERT INTO latchkey.states SELECT * FROM before");
  for (const std::string& call :
       {"complete_run(" + by(2) + ", 'second')", "fail_run(" + by(2) + ", 'no', retryable => false)"}) {
    const SqlError error = refusal(caller, "SELECT latchkey." + call);
    EXPECT_EQ(error.state, "23505") << call;
    EXPECT_NE(std::string(error.what()).find("settlements_pkey"), std::string::npos) << error.what();
  }
}

TEST_F(SqlBlocks, PredecessorInABlockReleasesItsDependent) {
  put_block(1, 3, 10min);
  const auto job = parse_uuid(
      *caller.one("SELECT run FROM latchkey.enqueue('g', after => ARRAY['" + to_string(ids_[2]) + "']::uuid[])"));
  EXPECT_EQ(load_run(admin, *job).waiting_for, 1u);
  caller.run("SELECT latchkey.complete_run(" + by(2) + ")");
  EXPECT_EQ(load_run(admin, *job).waiting_for, 0u);
}

TEST_F(SqlBlocks, TwoRunsLeaveOneBlockAtOnce) {
  put_block(1, 9, 10min);
  Sql other = service("default");
  caller.run("BEGIN; SELECT latchkey.complete_run(" + by(4) + ")");
  other.send("SELECT latchkey.complete_run(" + by(8) + ")");
  wait_until_blocked(other.pid());
  caller.run("COMMIT");
  other.fetch();
  EXPECT_EQ(blocks(), "1-3 5-7 9-9");
  EXPECT_EQ(states(), "4 8");
}

}  // namespace
}  // namespace latchkey
