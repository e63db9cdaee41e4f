// begin_run, enqueue, heartbeat, complete_run, fail_run: every row of the repeat table, and every call of an owner.
#include "sql/sql_runs.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

const Digest kHash = hash_key("default", "f", "k");

std::string print_of(const Fingerprint& print) {
  return as_hex({reinterpret_cast<const char*>(print.data()), print.size()}).substr(2);
}

class SqlRepeat : public SqlTest, public ::testing::WithParamInterface<RepeatRow> {
 protected:
  SqlRepeat() : caller(service("default")), before(put(GetParam().state)) {}

  // Stores the row's run, moved to the database's current time. Future instants are an hour away, so that a slow
  // machine does not reach them.
  std::optional<Run> put(KeyState state) {
    auto run = make_run_in(state);
    if (!run) return run;
    Run moved = moved_in_time(*run, database_now(admin) - kNoon);
    if (auto* queued = std::get_if<Queued>(&moved.state); queued && state == KeyState::queued_claim_not_due)
      queued->due_at += 1h;
    if (auto* running = std::get_if<Running>(&moved.state); running && state == KeyState::running)
      running->lease_until += 1h;
    store_run(admin, moved);
    admin.run("SELECT setval('latchkey.counters', 5001), setval('latchkey.fences', 5001)");
    return moved;
  }
  std::string arguments(const Fingerprint& print) const {
    const RepeatRow& row = GetParam();
    std::string text = is_lock(row.state) ? "'f', 'k', guard => 'while-running'"
                                          : "'f', 'k', guard => 'once', fingerprint => '" + print_of(print) + "'";
    if (row.state == KeyState::failed_unknown_hold) text += ", on_doubt => 'hold'";
    return text;
  }
  std::optional<Run> latest() { return find_latest(admin, kHash); }

  Sql caller;
  const std::optional<Run> before;
};

TEST_P(SqlRepeat, BeginRun) {
  const RepeatRow& row = GetParam();
  const auto said = caller.row(
      "SELECT status, code, run, fence, generation, attempt, retry_after > interval '0', result_text, lease_until > "
      "clock_timestamp() + interval '50 s' FROM latchkey.begin_run(" +
      arguments(kSame) + ")");
  const auto run = latest();
  ASSERT_TRUE(run);
  EXPECT_EQ(said[2], to_string(run->id()));
  EXPECT_EQ(said[1].value_or(""), row.code);
  EXPECT_EQ(said[6] == "t", row.retry_after);
  switch (row.claim) {
    case ClaimAnswer::new_run:
    case ClaimAnswer::same_run:
    case ClaimAnswer::new_generation:
      EXPECT_EQ(said[0], "won");
      EXPECT_EQ(run->status(), Status::running);
      EXPECT_EQ(said[3], std::to_string(static_cast<std::uint64_t>(run->fence)));
      EXPECT_EQ(said[8], "t");
      EXPECT_EQ(before && run->id() == before->id(), row.claim != ClaimAnswer::new_run);
      if (before) EXPECT_GT(run->fence, before->fence);
      if (row.claim == ClaimAnswer::same_run) EXPECT_EQ(run->attempt, before->attempt + 1);
      if (row.claim == ClaimAnswer::new_generation) EXPECT_EQ(run->generation, before->generation + 1);
      break;
    case ClaimAnswer::replay:
      EXPECT_EQ(said[0], "replayed");
      EXPECT_EQ(said[7], "result");
      break;
    case ClaimAnswer::busy:
      EXPECT_EQ(said[0], "busy");
      break;
    case ClaimAnswer::not_due:
      EXPECT_EQ(said[0], "not_due");
      break;
    case ClaimAnswer::in_doubt:
      EXPECT_EQ(said[0], "in_doubt");
      break;
  }
  if (said[0] != "won") EXPECT_EQ(said[3], std::nullopt) << "a refused caller got a fence";
  if (row.state == KeyState::lapsed_hold) EXPECT_EQ(run->status(), Status::in_doubt);
  if (row.state == KeyState::lapsed_job_rerun) EXPECT_EQ(run->as<Queued>()->by, QueuedBy::lease_end);
}

TEST_P(SqlRepeat, Enqueue) {
  const RepeatRow& row = GetParam();
  const auto said = caller.row("SELECT status, run, duplicate FROM latchkey.enqueue(" + arguments(kSame) + ")");
  const auto run = latest();
  ASSERT_TRUE(run);
  EXPECT_EQ(said[1], to_string(run->id()));
  EXPECT_EQ(said[0], row.enqueue == EnqueueAnswer::duplicate ? "duplicate" : "enqueued");
  EXPECT_EQ(said[2], row.enqueue == EnqueueAnswer::duplicate ? "t" : "f");
  if (row.enqueue == EnqueueAnswer::duplicate) return;
  EXPECT_EQ(before && run->id() == before->id(), row.enqueue == EnqueueAnswer::new_generation);
  EXPECT_EQ(run->status(), Status::queued);
  EXPECT_EQ(run->origin, Origin::enqueued);
  EXPECT_EQ(run->generation, row.enqueue == EnqueueAnswer::new_generation ? before->generation + 1 : 1u);
  EXPECT_FALSE(next_deadline(*run));
}

// covers: B2
TEST_P(SqlRepeat, AnotherFingerprintNeverDisturbs) {
  if (!GetParam().fingerprint_checked || is_lock(GetParam().state)) return;
  const auto begun = caller.row("SELECT status, code, run, fence FROM latchkey.begin_run(" + arguments(kOther) + ")");
  EXPECT_EQ(begun, (std::vector<Value>{"mismatch", "KEY_REUSED", to_string(before->id()), std::nullopt}));
  const auto enqueued = caller.row("SELECT status, code, run FROM latchkey.enqueue(" + arguments(kOther) + ")");
  EXPECT_EQ(enqueued, (std::vector<Value>{"mismatch", "KEY_REUSED", to_string(before->id())}));
  EXPECT_TRUE(same_run(*latest(), *before));
}

INSTANTIATE_TEST_SUITE_P(Table, SqlRepeat, ::testing::ValuesIn(kRepeatTable),
                         [](const auto& row) { return std::string(name(row.param.state)); });

class SqlFunctions : public SqlTest {
 protected:
  struct Begun {
    std::string run, fence;
  };
  Begun begin(const std::string& arguments) {
    const auto said = caller.row("SELECT run, fence, status FROM latchkey.begin_run(" + arguments + ")");
    EXPECT_EQ(said[2], "won") << arguments;
    return {said[0].value_or(""), said[1].value_or("0")};
  }
  std::string by(const Begun& begun) { return "'" + begun.run + "', " + begun.fence; }
  Run load(const Begun& begun) { return load_run(admin, *parse_uuid(begun.run)); }
  // Lets time pass for one run: its instants move into the past.
  void age(const Begun& begun, Duration by) {
    const Run run = moved_in_time(load(begun), -by);
    auto columns = state_columns(run);
    admin.rows(
        "UPDATE latchkey.states SET at = $2, lease_until = $3, first_attempt_at = $4, deadline = $5 WHERE seq = $1",
        {columns[0], columns[14], columns[15], columns[11], columns[26]});
  }

  // SQL: the column is about `seconds` after now. A stalled machine may need a minute for one statement.
  static std::string is_left(const std::string& column, int seconds) {
    return "extract(epoch FROM " + column + " - clock_timestamp()) BETWEEN " + std::to_string(seconds - 60) + " AND " +
           std::to_string(seconds + 1);  // instants are whole milliseconds
  }

  Sql caller = service("default");
};

TEST_F(SqlFunctions, ARunFromItsStartToItsReplay) {
  const Begun won = begin(
      "'pay', 'order-7', input => '{\"n\":1}', lease => '5 min', window_span => '7 days', on_doubt => 'hold', retries "
      "=> 2, caller => 'till'");
  const Run run = load(won);
  EXPECT_EQ(run.head->input, "{\"n\":1}");
  EXPECT_EQ(run.head->key, "order-7");
  EXPECT_EQ(run.head->caller, "till");
  EXPECT_EQ(run.head->window, 24h * 7);
  EXPECT_EQ(run.head->on_doubt, OnDoubt::hold);
  EXPECT_EQ(run.attempts_max, 3u);
  EXPECT_EQ(uuid_time(run.id()), run.head->created_at);
  EXPECT_EQ(run.as<Running>()->lease_until - run.as<Running>()->started_at, 5min);
  EXPECT_EQ(
      caller.row("SELECT status, changed, result_text FROM latchkey.complete_run(" + by(won) + ", '{\"paid\": true}')"),
      (std::vector<Value>{"completed", "t", "{\"paid\": true}"}));
  // A repeated settlement gets the stored result, even if it has another one.
  EXPECT_EQ(caller.row("SELECT status, changed, result_text FROM latchkey.complete_run(" + by(won) +
                       ", 'other', if_settled => 'answer')"),
            (std::vector<Value>{"completed", "f", "{\"paid\": true}"}));
  EXPECT_EQ(refusal(caller, "SELECT latchkey.fail_run(" + by(won) + ", 'no')").detail, "ALREADY_SETTLED");
  const auto replay = caller.row("SELECT status, result_text, run FROM latchkey.begin_run('pay', 'order-7')");
  EXPECT_EQ(replay, (std::vector<Value>{"replayed", "{\"paid\": true}", won.run}));
}

TEST_F(SqlFunctions, BytesAreStoredUnchanged) {
  const Begun won = begin("'f', 'bytes', input_bytes => '\\x00ff5c'");
  EXPECT_EQ(load(won).head->input, std::string("\x00\xff\x5c", 3));
  caller.run("SELECT latchkey.complete_run(" + by(won) + ", result_bytes => '\\xfe00')");
  EXPECT_EQ(caller.one("SELECT result FROM latchkey.begin_run('f', 'bytes')"), "\\xfe00");
  const Begun empty = begin("'f', 'empty'");
  caller.run("SELECT latchkey.complete_run(" + by(empty) + ")");
  EXPECT_EQ(caller.row("SELECT status, result, result_text FROM latchkey.begin_run('f', 'empty')"),
            (std::vector<Value>{"replayed", "\\x", ""}));
}

// covers: C4
TEST_F(SqlFunctions, RetriesFollowThePolicyToADeadLetter) {
  Begun won = begin("'f', 'k', retries => 1");
  const Instant before = database_now(admin);
  auto failed = caller.row(
      "SELECT status, changed, dead_letter, (extract(epoch FROM retry_at) * 1000)::bigint FROM latchkey.fail_run(" +
      by(won) + ", 'first', code => 'E1')");
  const Instant retry_at = from_ms(std::stoll(failed.at(3).value()));
  failed.pop_back();
  EXPECT_EQ(failed, (std::vector<Value>{"queued", "t", std::nullopt}));
  EXPECT_GE(retry_at, before + 1s);
  EXPECT_LE(retry_at, database_now(admin) + 1s);
  EXPECT_EQ(load(won).as<Queued>()->due_at, retry_at);
  age(won, -1h);  // not due, even on a slow machine
  EXPECT_EQ(caller.one("SELECT changed FROM latchkey.fail_run(" + by(won) + ", 'first')"), "f");
  EXPECT_EQ(caller.one("SELECT code FROM latchkey.begin_run('f', 'k')"), "NOT_DUE");
  age(won, 1h + 2s);
  const Begun again = begin("'f', 'k'");
  EXPECT_EQ(again.run, won.run);
  EXPECT_EQ(refusal(caller, "SELECT latchkey.complete_run(" + by(won) + ")").detail, "LEASE_LOST");
  failed = caller.row("SELECT status, dead_letter IS NOT NULL, dead_letter FROM latchkey.fail_run(" + by(again) +
                      ", 'last')");
  EXPECT_EQ(failed[0], "failed");
  EXPECT_EQ(failed[1], "t");
  EXPECT_EQ(caller.row("SELECT changed, dead_letter FROM latchkey.fail_run(" + by(again) + ", 'last')"),
            (std::vector<Value>{"f", failed[2]}));
  const auto member = admin.row(
      "SELECT code, convert_from(reason, 'UTF8'), attempts, effect, convert_from(key, 'UTF8') FROM "
      "latchkey.dead_letter_members");
  EXPECT_EQ(member, (std::vector<Value>{"MAX_RETRIES_EXCEEDED", "last", "2", "0", "k"}));
}

TEST_F(SqlFunctions, RetryAfterPermanentAndUnknownOutcomes) {
  const Begun later = begin("'f', 'later'");
  EXPECT_EQ(caller.one("SELECT " + is_left("retry_at", 600) + " FROM latchkey.fail_run(" + by(later) +
                       ", 'm', retry_after => '10 min')"),
            "t");
  const Begun permanent = begin("'f', 'permanent'");
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.fail_run(" + by(permanent) + ", 'm', retryable => false)"),
            "failed");
  EXPECT_EQ(load(permanent).as<Failed>()->code, "EXECUTION_ERROR");
  const Begun held = begin("'f', 'held', on_doubt => 'hold'");
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.fail_run(" + by(held) + ", 'm', outcome_unknown => true)"),
            "in_doubt");
  EXPECT_EQ(caller.row("SELECT status, code FROM latchkey.begin_run('f', 'held')"),
            (std::vector<Value>{"in_doubt", "OUTCOME_UNKNOWN"}));
}

TEST_F(SqlFunctions, LostLastAttemptBecomesADeadLetter) {
  const Begun won = begin("'f', 'k', retries => 0, lease => '1 min'");
  age(won, 61s);
  const Begun again = begin("'f', 'k'");
  EXPECT_EQ(again.run, won.run);
  EXPECT_EQ(load(again).generation, 2u);
  EXPECT_EQ(admin.row("SELECT code, effect, generation FROM latchkey.dead_letter_members"),
            (std::vector<Value>{"OUTCOME_UNKNOWN", "1", "1"}));
  // Under while-running, a key whose last attempt was lost is free: the next claim gets another run.
  const Begun lock = begin("'f', 'lock', guard => 'while-running', retries => 0, lease => '1 min'");
  age(lock, 61s);
  EXPECT_NE(begin("'f', 'lock', guard => 'while-running'").run, lock.run);
  EXPECT_EQ(load(lock).status(), Status::failed);
  EXPECT_EQ(admin.one("SELECT count FROM latchkey.dead_letters"), "2");
}

TEST_F(SqlFunctions, LateResultOfLatestOwnerIsAccepted) {
  const Begun won = begin("'f', 'k', lease => '1 s'");
  age(won, 10min);
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.complete_run(" + by(won) + ", 'late')"), "completed");
}

TEST_F(SqlFunctions, HeartbeatsExtendAndNeverShorten) {
  const Begun won = begin("'f', 'k', lease => '10 min'");
  age(won, 5min);
  const auto extended = caller.row("SELECT " + is_left("lease_until", 600) +
                                   ", cancel, lease_until FROM latchkey.heartbeat(" + by(won) + ")");
  EXPECT_EQ(extended.at(0), "t");
  EXPECT_EQ(extended.at(1), "f");
  EXPECT_EQ(caller.one("SELECT lease_until FROM latchkey.heartbeat(" + by(won) + ", lease => '1 s')"), extended.at(2));
  EXPECT_EQ(caller.one("SELECT " + is_left("lease_until", 3600) + " FROM latchkey.heartbeat(" + by(won) +
                       ", lease => '1 h')"),
            "t");
  EXPECT_EQ(*next_deadline(load(won)), from_ms(std::stoll(*admin.one("SELECT deadline FROM latchkey.states"))));
  admin.run("UPDATE latchkey.states SET flags = flags | 1");
  EXPECT_EQ(caller.one("SELECT cancel FROM latchkey.heartbeat(" + by(won) + ")"), "t");
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.fail_run(" + by(won) + ", 'm')"), "cancelled");
  EXPECT_EQ(refusal(caller, "SELECT latchkey.heartbeat(" + by(won) + ")").state, "LK409");
}

TEST_F(SqlFunctions, ANamedCallRecognisesItself) {
  const std::string call = "call_id => '11111111-1111-4111-8111-111111111111'";
  const Begun won = begin("'f', 'k', " + call);
  EXPECT_EQ(caller.row("SELECT status, run, fence, repeated FROM latchkey.begin_run('f', 'k', " + call + ")"),
            (std::vector<Value>{"won", won.run, won.fence, "t"}));
  EXPECT_EQ(
      caller.one("SELECT code FROM latchkey.begin_run('f', 'k', call_id => '22222222-2222-4222-8222-222222222222')"),
      "ALREADY_RUNNING");
  // Without a key, the run is found by its call_id; the input must be the same.
  const Value job = caller.one("SELECT run FROM latchkey.enqueue('g', input => 'x', " + call + ")");
  EXPECT_EQ(caller.row("SELECT run, duplicate FROM latchkey.enqueue('g', input => 'x', " + call + ")"),
            (std::vector<Value>{job, "f"}));
  EXPECT_EQ(caller.row("SELECT run, status, code FROM latchkey.enqueue('g', input => 'y', " + call + ")"),
            (std::vector<Value>{job, "mismatch", "KEY_REUSED"}));
  EXPECT_NE(caller.one("SELECT run FROM latchkey.enqueue('g', input => 'x')"), job);
}

// covers: C2
TEST_F(SqlFunctions, BusyCodeIsTheCallersChoice) {
  begin("'sync-xledger', 'acme', guard => 'while-running'");
  EXPECT_EQ(caller.row("SELECT status, code, message <> '' FROM latchkey.begin_run('sync-xledger', 'acme', guard => "
                       "'while-running', busy_code => 'SYNC_ALREADY_RUNNING')"),
            (std::vector<Value>{"busy", "SYNC_ALREADY_RUNNING", "t"}));
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.runs"), "1");
}

TEST_F(SqlFunctions, EnqueuedJobsEqualTheServers) {
  const Instant before = database_now(admin);
  const auto id =
      parse_uuid(*caller.one("SELECT run FROM latchkey.enqueue('f', 'k', '{}', delay => '1 h', priority => 7, "
                             "retry_policy => '{\"retries\":1,\"first_ms\":5}')"));
  const Run run = load_run(admin, *id);
  EXPECT_EQ(run.head->priority, 7);
  EXPECT_EQ(run.head->guard, Guard::once);
  EXPECT_EQ(run.head->retry, (RetryPolicy{.retries = 1, .first = 5ms}));
  EXPECT_GE(run.as<Queued>()->due_at, before + 1h);
  EXPECT_LE(run.as<Queued>()->due_at, database_now(admin) + 1h);
  EXPECT_EQ(admin.one("SELECT priority FROM latchkey.states"), "7");
  const auto at =
      caller.one("SELECT run FROM latchkey.enqueue('f', 'at', run_at => clock_timestamp() + interval '1000 h')");
  const auto due = load_run(admin, *parse_uuid(*at)).as<Queued>()->due_at;
  EXPECT_GE(due, before + 1000h);
  EXPECT_LE(due, database_now(admin) + 1000h);
  EXPECT_EQ(load_run(admin, *parse_uuid(*caller.one("SELECT run FROM latchkey.enqueue('f')"))).head->guard,
            Guard::none);
}

// covers: A11
TEST_F(SqlFunctions, PredecessorsReleaseTheirDependents) {
  const Begun first = begin("'f', 'first'");
  const Begun second = begin("'f', 'second', retries => 0");
  const std::string after = "after => ARRAY['" + first.run + "', '" + second.run + "', '" + first.run + "']::uuid[]";
  std::vector<RunId> jobs;
  for (const char* mode : {"wait", "skip", "run", "fail"})
    jobs.push_back(*parse_uuid(*caller.one("SELECT run FROM latchkey.enqueue('g', '" + std::string(mode) + "', " +
                                           after + ", on_failed => '" + mode + "')")));
  const auto last = parse_uuid(*caller.one("SELECT run FROM latchkey.enqueue('h', after => ARRAY['" +
                                           to_string(jobs[1]) + "']::uuid[], on_failed => 'fail')"));
  for (const RunId& job : jobs) EXPECT_EQ(load_run(admin, job).waiting_for, 2u);
  caller.run("SELECT latchkey.complete_run(" + by(first) + ")");
  for (const RunId& job : jobs) EXPECT_EQ(load_run(admin, job).waiting_for, 1u);
  caller.run("SELECT latchkey.fail_run(" + by(second) + ", 'no')");
  EXPECT_EQ(load_run(admin, jobs[0]).waiting_for, 1u);
  EXPECT_EQ(load_run(admin, jobs[1]).as<Cancelled>()->code, "PREDECESSOR_FAILED");
  EXPECT_EQ(load_run(admin, jobs[2]).waiting_for, 0u);
  EXPECT_EQ(load_run(admin, jobs[3]).as<Failed>()->code, "PREDECESSOR_FAILED");
  EXPECT_EQ(load_run(admin, *last).as<Failed>()->code, "PREDECESSOR_FAILED") << "a skipped one counts as failed";
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.waits"), "1");
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.dead_letters"), "3");
  // Predecessors that have ended already.
  const auto late = parse_uuid(
      *caller.one("SELECT run FROM latchkey.enqueue('g', 'late', after => ARRAY['" + first.run + "']::uuid[])"));
  EXPECT_EQ(load_run(admin, *late).waiting_for, 0u);
  const SqlError unknown =
      refusal(caller, "SELECT latchkey.enqueue('g', after => ARRAY['" + to_string(id_of(777)) + "']::uuid[])");
  EXPECT_EQ(unknown.detail, "PREDECESSOR_UNKNOWN");
  EXPECT_EQ(unknown.state, "LK422");
}

TEST_F(SqlFunctions, LimitsAreTheServers) {
  const auto refused = [&](const std::string& arguments) {
    return refusal(caller, "SELECT latchkey." + arguments).detail;
  };
  for (const char* bad :
       {"begin_run('')", "begin_run(NULL, 'k')", "begin_run(repeat('f', 129), 'k')", "begin_run('f', repeat('k', 513))",
        "begin_run('f', E'a\\nb')", "begin_run('f', 'k', guard => 'twice')", "begin_run('f', 'k', on_doubt => 'ask')",
        "begin_run('f', 'k', lease => '999 ms')", "begin_run('f', 'k', lease => '25 h')",
        "begin_run('f', 'k', window_span => '-1 s')", "begin_run('f', 'k', retries => -1)",
        "begin_run('f', 'k', retries => 1001)", "begin_run('f', 'k', fingerprint => 'abc')",
        "begin_run('f', 'k', retry_policy => '[]')", "enqueue('f', priority => 101)", "enqueue('f', delay => '-1 s')",
        "enqueue('f', delay => '1 s', run_at => clock_timestamp())", "enqueue('f', on_failed => 'pray')",
        "begin_run('f', busy_code => repeat('x', 129), key => 'k')", "enqueue('f', run_at => 'infinity')",
        "enqueue('f', after => ARRAY[NULL]::uuid[])", "enqueue('f', input => 'a', input_bytes => 'b')",
        "enqueue('f', retry_policy => '{\"schedule_ms\": []}')", "enqueue('f', retry_policy => '{\"schedule_ms\": 5}')",
        "begin_run('f', 'k', retry_policy => 'null')", "begin_run('f', 'k', retry_policy => '5')",
        "enqueue('f', after => ARRAY[ARRAY[gen_random_uuid()], ARRAY[gen_random_uuid()]])",
        // A guard needs a key.
        "begin_run('f')", "begin_run('f', 'order-' || NULL)", "begin_run('f', '')", "enqueue('f', '')",
        "begin_run('f', guard => 'while-running')", "enqueue('f', guard => 'once')"})
    EXPECT_EQ(refused(bad), "INVALID_ARGUMENT") << bad;
  EXPECT_EQ(refused("transition(repeat('m', 129), 'e', 'go')"), "INVALID_ARGUMENT");
  EXPECT_EQ(refused("transition('m', 'e', repeat('a', 129))"), "INVALID_ARGUMENT");
  EXPECT_EQ(refused("begin_run('f', 'k', input => repeat('x', 1048577))"), "BODY_TOO_LARGE");
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.runs"), "0");
  EXPECT_EQ(
      caller.one(
          "SELECT status FROM latchkey.begin_run(repeat('f', 128), repeat('k', 512), input => repeat('x', 1048576))"),
      "won");
  EXPECT_EQ(caller.one("SELECT status FROM latchkey.begin_run('f', guard => 'none')"), "won");
}

TEST_F(SqlFunctions, StoreClockNeverMovesBackwards) {
  const std::int64_t ahead = to_ms(database_now(admin) + 1h);
  admin.run("SELECT setval('latchkey.clock', " + std::to_string(ahead) + ")");
  const Run run = load(begin("'f', 'k'"));
  EXPECT_GE(to_ms(run.head->created_at), ahead - 1000);
  // A clock mark in the past is set again, one second ahead.
  admin.run("SELECT setval('latchkey.clock', 1)");
  begin("'f', 'k2'");
  EXPECT_GT(std::stoll(*admin.one("SELECT last_value FROM latchkey.clock")), to_ms(database_now(admin)));
}

TEST_F(SqlFunctions, LowerFenceIsNotIssued) {
  const Begun won = begin("'f', 'k', lease => '1 s'");
  age(won, 10s);
  admin.run("UPDATE latchkey.states SET fence = 1000000");
  EXPECT_EQ(refusal(caller, "SELECT latchkey.begin_run('f', 'k')").detail, "INTERNAL");
}

}  // namespace
}  // namespace latchkey
