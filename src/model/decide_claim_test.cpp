// Every row of the repeat table, checked on sample runs.
#include <gtest/gtest.h>

#include "model/decide.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

ClaimRequest claim_for(KeyState state) {
  ClaimRequest request = a_claim();
  if (is_lock(state)) request.guard = Guard::while_running;
  return request;
}

EnqueueRequest job_for(KeyState state) {
  EnqueueRequest request = a_job();
  if (is_lock(state)) request.guard = Guard::while_running;
  return request;
}

// The reply that a store gives for a decision.
ClaimReply reply_of(const ClaimDecision& decision, const ClaimRequest& request) {
  if (const auto* refuse = std::get_if<Refuse>(&decision)) return refuse->reply;
  if (const auto* again = std::get_if<StartAgain>(&decision)) return Won{again->next, kNewFence, kNoon + request.lease};
  RunHead head = a_head();
  head.id = id_of(2);
  return Won{start_claimed(std::make_shared<RunHead>(head), request, kNewFence, kNoon), kNewFence,
             kNoon + request.lease};
}

EnqueueReply reply_of(const EnqueueDecision& decision) {
  if (const auto* existing = std::get_if<UseExisting>(&decision)) return existing->reply;
  if (const auto* reopened = std::get_if<Reopen>(&decision)) return Enqueued{reopened->next, false};
  RunHead head = a_head();
  head.id = id_of(2);
  return Enqueued{start_queued(std::make_shared<RunHead>(head), kNoon, 0), false};
}

class RepeatTableTest : public testing::TestWithParam<RepeatRow> {
 protected:
  const RepeatRow& row = GetParam();
  const std::optional<latchkey::Run> latest = make_run_in(row.state);
};

TEST_P(RepeatTableTest, ClaimGetsReplyOfItsRow) {
  const ClaimRequest request = claim_for(row.state);
  const ClaimReply reply = reply_of(decide_claim(latest, request, kNewFence, kNoon), request);
  EXPECT_EQ(classify(reply, latest), row.claim);
  EXPECT_EQ(on_wire(reply), (WireAnswer{row.status, std::string(row.code), row.retry_after}));
}

TEST_P(RepeatTableTest, WonClaimOwnsTheRun) {
  const ClaimRequest request = claim_for(row.state);
  const ClaimReply reply = reply_of(decide_claim(latest, request, kNewFence, kNoon), request);
  const auto* won = std::get_if<Won>(&reply);
  ASSERT_EQ(won != nullptr, row.status == 201);
  if (!won) return;
  const auto* running = won->run.as<Running>();
  ASSERT_TRUE(running);
  EXPECT_EQ(running->lease_until, kNoon + request.lease);
  EXPECT_EQ(won->run.fence, kNewFence);
  EXPECT_EQ(won->run.attempt, row.claim == ClaimAnswer::same_run ? latest->attempt + 1 : 1);
  EXPECT_EQ(won->run.attempts_total, row.claim == ClaimAnswer::new_run ? 1 : latest->attempts_total + 1);
  EXPECT_EQ(won->run.effect_key, won->run.id());
}

TEST_P(RepeatTableTest, EnqueueGetsReplyOfItsRow) {
  const EnqueueReply reply = reply_of(decide_enqueue(latest, job_for(row.state), kNoon));
  EXPECT_EQ(classify(reply, latest), row.enqueue);
}

TEST_P(RepeatTableTest, OtherFingerprintIsRefusedFirst) {
  ClaimRequest claim = claim_for(row.state);
  claim.fingerprint = kOther;
  const ClaimDecision decision = decide_claim(latest, claim, kNewFence, kNoon);
  EXPECT_EQ(on_wire(reply_of(decision, claim)).status, row.fingerprint_checked ? 422 : 201);
  if (row.fingerprint_checked) EXPECT_FALSE(std::get<Refuse>(decision).next) << "a mismatch changed the run";

  EnqueueRequest job = job_for(row.state);
  job.fingerprint = kOther;
  const EnqueueReply reply = reply_of(decide_enqueue(latest, job, kNoon));
  EXPECT_EQ(std::holds_alternative<Mismatch>(reply), row.fingerprint_checked);
}

TEST_P(RepeatTableTest, AbsentFingerprintMatchesAny) {
  ClaimRequest request = claim_for(row.state);
  request.fingerprint.reset();
  EXPECT_EQ(on_wire(reply_of(decide_claim(latest, request, kNewFence, kNoon), request)).status, row.status);
}

// A sweep before the claim makes no difference to the caller.
TEST_P(RepeatTableTest, EarlierSweepChangesNoReply) {
  if (!latest) return;
  const auto swept = decide_deadline(*latest, kNoon);
  const ClaimRequest request = claim_for(row.state);
  const ClaimReply reply = reply_of(decide_claim(swept ? swept : latest, request, kNewFence, kNoon), request);
  EXPECT_EQ(on_wire(reply), (WireAnswer{row.status, std::string(row.code), row.retry_after}));
}

INSTANTIATE_TEST_SUITE_P(Rows, RepeatTableTest, testing::ValuesIn(kRepeatTable),
                         [](const auto& row) { return std::string(name(row.param.state)); });

TEST(DecideClaim, RepeatedCallGetsItsFence) {
  ClaimRequest request = a_claim();
  request.claim = id_of(99);
  Running running{.started_at = kNoon - 1s, .lease_until = kNoon + 59s, .claim = request.claim};
  const auto decision = decide_claim(a_run(running), request, kNewFence, kNoon);
  const auto& won = std::get<Won>(std::get<Refuse>(decision).reply);
  EXPECT_EQ(won.fence, kOldFence);
  EXPECT_EQ(won.lease_until, kNoon + 59s);
  EXPECT_EQ(won.run.attempt, 1u);
  EXPECT_FALSE(std::get<Refuse>(decision).next);

  running.lease_until = kNoon;  // expired: a new attempt with a new fence
  const auto late = decide_claim(a_run(running), request, kNewFence, kNoon);
  EXPECT_EQ(std::get<StartAgain>(late).next.fence, kNewFence);
  EXPECT_EQ(std::get<StartAgain>(late).next.attempt, 2u);
}

TEST(DecideClaim, CallWithoutIdIsNeverARepeatedCall) {
  const Running running{.started_at = kNoon - 1s, .lease_until = kNoon + 59s};
  const auto decision = decide_claim(a_run(running), a_claim(), kNewFence, kNoon);
  EXPECT_TRUE(std::holds_alternative<Busy>(std::get<Refuse>(decision).reply));
}

TEST(DecideClaim, BusyAndNotDueHaveRetryAfter) {
  const auto busy = decide_claim(make_run_in(KeyState::running), a_claim(), kNewFence, kNoon);
  EXPECT_EQ(std::get<Busy>(std::get<Refuse>(busy).reply).retry_after, 1ms);
  const auto wait = decide_claim(make_run_in(KeyState::queued_claim_not_due), a_claim(), kNewFence, kNoon);
  EXPECT_EQ(std::get<NotDue>(std::get<Refuse>(wait).reply).retry_after, 1ms);
}

TEST(DecideClaim, LastAttemptsExpiryEndsGeneration) {
  latchkey::Run run = *make_run_in(KeyState::lapsed_claim_rerun);
  run.attempt = run.attempts_max;
  const auto decision = decide_claim(run, a_claim(), kNewFence, kNoon);
  const auto& again = std::get<StartAgain>(decision);
  ASSERT_TRUE(again.ended && again.ended->as<Failed>());
  EXPECT_EQ(again.ended->as<Failed>()->code, "OUTCOME_UNKNOWN");
  EXPECT_EQ(again.ended->as<Failed>()->effect, Effect::unknown);
  EXPECT_EQ(again.next.generation, 2u);
  EXPECT_EQ(again.next.attempt, 1u);
}

TEST(DecideClaim, LastAttemptsExpiryFreesLock) {
  RunHead head = a_head();
  head.guard = Guard::while_running;
  latchkey::Run run = a_run(Running{.started_at = kNoon - 1min, .lease_until = kNoon}, head);
  run.attempt = run.attempts_max;
  const auto decision = decide_claim(run, a_claim(), kNewFence, kNoon);
  ASSERT_TRUE(std::get<StartNew>(decision).ended);
  EXPECT_TRUE(std::get<StartNew>(decision).ended->as<Failed>());
}

TEST(DecideClaim, CancelRequestFreesKeyAfterExpiry) {
  for (const auto& fingerprint : {kSame, kOther}) {
    const latchkey::Run run =
        a_run(Running{.started_at = kNoon - 1min, .lease_until = kNoon, .cancel_requested = true});
    ClaimRequest request = a_claim();
    request.fingerprint = fingerprint;
    const auto decision = decide_claim(run, request, kNewFence, kNoon);
    ASSERT_TRUE(std::holds_alternative<StartNew>(decision));
    const auto& ended = std::get<StartNew>(decision).ended;
    ASSERT_TRUE(ended && ended->as<Cancelled>());
    EXPECT_EQ(ended->as<Cancelled>()->effect, Effect::unknown);
  }
}

TEST(DecideClaim, NoRetryStartsAfterTheTotal) {
  RunHead head = a_head();
  head.retry.total = 10min;  // the first attempt was ten minutes before noon
  for (const State& state : {State{Queued{kNoon - 1min, QueuedBy::failed_attempt}},
                             State{Running{.started_at = kNoon - 10min, .lease_until = kNoon - 1min}}}) {
    const auto in_time = decide_claim(a_run(state, head), a_claim(), kNewFence, kNoon);
    EXPECT_EQ(std::get<StartAgain>(in_time).next.generation, 1u);
    const auto late = decide_claim(a_run(state, head), a_claim(), kNewFence, kNoon + 1ms);
    EXPECT_EQ(std::get<StartAgain>(late).next.generation, 2u);
    ASSERT_TRUE(std::get<StartAgain>(late).ended);
    EXPECT_TRUE(std::get<StartAgain>(late).ended->as<Failed>());
  }
}

TEST(DecideClaim, HoldRequestDoesNotRerunDoubtfulFailure) {
  const latchkey::Run failed = a_run(Failed{kNoon - 1min, "OUTCOME_UNKNOWN", Effect::unknown});
  ClaimRequest claim = a_claim();
  EXPECT_TRUE(std::holds_alternative<StartAgain>(decide_claim(failed, claim, kNewFence, kNoon)));
  claim.on_doubt = OnDoubt::hold;
  const auto decision = decide_claim(failed, claim, kNewFence, kNoon);
  ASSERT_TRUE(std::holds_alternative<Refuse>(decision));
  EXPECT_EQ(on_wire(std::get<Refuse>(decision).reply).code, "OUTCOME_UNKNOWN");
  EnqueueRequest job = a_job();
  EXPECT_TRUE(std::holds_alternative<Reopen>(decide_enqueue(failed, job, kNoon)));
  job.on_doubt = OnDoubt::hold;
  EXPECT_TRUE(std::holds_alternative<UseExisting>(decide_enqueue(failed, job, kNoon)));
}

TEST(DecideClaim, OnlyOperatorsReopenInternalRuns) {
  RunHead head = a_head();
  head.made_by = MadeBy::latchkey;
  EnqueueRequest own = a_job();
  own.made_by = MadeBy::latchkey;
  for (const State& state : {State{Queued{kNoon}}, State{Running{.lease_until = kNoon + 1s}}, State{InDoubt{kNoon}},
                             State{Completed{kNoon - 48h, ""}}, State{Failed{kNoon, "EXECUTION_ERROR"}},
                             State{Cancelled{kNoon, "CANCELLED"}}}) {
    const latchkey::Run run = a_job_run(state, head);
    for (const EnqueueRequest& request : {own, a_job()}) {
      const auto decision = decide_enqueue(run, request, kNoon);
      ASSERT_TRUE(std::holds_alternative<UseExisting>(decision)) << to_string(run.status());
      EXPECT_TRUE(std::get<Enqueued>(std::get<UseExisting>(decision).reply).duplicate);
    }
    const auto claim = decide_claim(run, a_claim(), kNewFence, kNoon);
    EXPECT_TRUE(std::holds_alternative<Refuse>(claim)) << to_string(run.status());
  }
}

TEST(DecideEnqueue, RepeatedCallGetsItsRunInEveryState) {
  RunHead head = a_head();
  head.claim = id_of(99);
  EnqueueRequest request = a_job();
  request.claim = head.claim;
  for (const State& state : {State{Queued{kNoon}}, State{Completed{kNoon - 48h, ""}}, State{Cancelled{kNoon, ""}},
                             State{Failed{kNoon, "EXECUTION_ERROR"}}}) {
    const auto decision = decide_enqueue(a_job_run(state, head), request, kNoon);
    ASSERT_TRUE(std::holds_alternative<UseExisting>(decision));
    EXPECT_FALSE(std::get<Enqueued>(std::get<UseExisting>(decision).reply).duplicate);
  }
}

TEST(DecideEnqueue, ReopenedRunIsDueAfterTheDelay) {
  EnqueueRequest request = a_job();
  request.delay = 5min;
  const auto decision = decide_enqueue(make_run_in(KeyState::once_failed), request, kNoon);
  const latchkey::Run& next = std::get<Reopen>(decision).next;
  EXPECT_EQ(next.as<Queued>()->due_at, kNoon + 5min);
  EXPECT_EQ(next.origin, Origin::enqueued);
  EXPECT_EQ(next.attempt, 0u);
  EXPECT_EQ(next.fence, kOldFence);
}

TEST(DecideClaim, ReopeningRequestSetsRetries) {
  const latchkey::Run failed = *make_run_in(KeyState::once_failed);
  for (const std::uint32_t retries : {0u, 1u, 9u}) {
    ClaimRequest claim = a_claim();
    claim.retry = {.retries = retries, .first = 1h};
    const auto again = std::get<StartAgain>(decide_claim(failed, claim, kNewFence, kNoon)).next;
    EXPECT_EQ(again.attempts_max, retries + 1);
    EXPECT_EQ(again.head->retry, failed.head->retry) << "the delays stay those of the first call";
    EnqueueRequest job = a_job();
    job.retry.retries = retries;
    EXPECT_EQ(std::get<Reopen>(decide_enqueue(failed, job, kNoon)).next.attempts_max, retries + 1);
  }
  ClaimRequest claim = a_claim();
  claim.retry.retries = 9;
  const auto next = decide_claim(make_run_in(KeyState::queued_claim_due), claim, kNewFence, kNoon);
  EXPECT_EQ(std::get<StartAgain>(next).next.attempts_max, 4u) << "the generation's number of attempts does not change";
}

TEST(DecideClaim, InfiniteWindowNeverEnds) {
  RunHead head = a_head();
  head.window = Duration::max();
  const latchkey::Run run = a_run(Completed{kNoon, "r"}, head);
  const auto decision = decide_claim(run, a_claim(), kNewFence, kNoon + 24h * 36500);
  EXPECT_TRUE(std::holds_alternative<Refuse>(decision));
  EXPECT_FALSE(may_purge(run, {}, kNoon + 24h * 36500));
}

TEST(DecideClaim, HugeLeaseDoesNotOverflow) {
  ClaimRequest request = a_claim();
  request.lease = Duration::max();
  const latchkey::Run run = start_claimed(std::make_shared<RunHead>(a_head()), request, kNewFence, kNoon);
  EXPECT_GT(run.as<Running>()->lease_until, kNoon);
}

}  // namespace
}  // namespace latchkey
