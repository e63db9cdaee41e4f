// Takes, heartbeats, deadlines, predecessors and purges.
#include <gtest/gtest.h>

#include "model/decide.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

RunHead holding() {
  RunHead head = a_head();
  head.on_doubt = OnDoubt::hold;
  return head;
}
RunHead on_failed(OnFailed mode) {
  RunHead head = a_head();
  head.on_failed = mode;
  return head;
}
Running lease(Instant until) { return Running{.started_at = kNoon - 1min, .lease_until = until}; }

TEST(DecideTake, TakesOnlyDueJobsThatWaitForNothing) {
  const TakeRequest request{.session = id_of(7)};
  const latchkey::Run due = a_job_run(Queued{kNoon});
  const auto taken = decide_take(due, request, kNewFence, kNoon);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->attempt, due.attempt + 1);
  EXPECT_EQ(taken->fence, kNewFence);
  EXPECT_EQ(taken->as<Running>()->lease_until, kNoon + due.head->lease);
  EXPECT_EQ(taken->as<Running>()->session, id_of(7));
  EXPECT_FALSE(decide_take(due, request, kNewFence, kNoon - 1ms));
  EXPECT_FALSE(decide_take(a_run(Queued{kNoon}), request, kNewFence, kNoon)) << "a claimed run waits for its caller";
  latchkey::Run waiting = due;
  waiting.waiting_for = 1;
  EXPECT_FALSE(decide_take(waiting, request, kNewFence, kNoon));
  for (const State& state : {State{lease(kNoon + 1s)}, State{InDoubt{kNoon}}, State{Completed{kNoon, ""}},
                             State{Failed{kNoon, ""}}, State{Cancelled{kNoon, ""}}})
    EXPECT_FALSE(decide_take(a_job_run(state), request, kNewFence, kNoon));
}

TEST(DecideTake, TheFirstAttemptStartsTheTotal) {
  latchkey::Run fresh = *make_run_in(KeyState::queued_job);
  EXPECT_EQ(decide_take(fresh, TakeRequest{.lease = 5s}, kNewFence, kNoon)->first_attempt_at, kNoon);
  EXPECT_EQ(decide_take(fresh, TakeRequest{.lease = 5s}, kNewFence, kNoon)->as<Running>()->lease_until, kNoon + 5s);
  const latchkey::Run second = a_job_run(Queued{kNoon, QueuedBy::failed_attempt});
  EXPECT_EQ(decide_take(second, TakeRequest{}, kNewFence, kNoon)->first_attempt_at, second.first_attempt_at);
}

TEST(DecideExtend, LengthensOnlyTheNewestOwnersLease) {
  const latchkey::Run run = a_run(lease(kNoon + 10s));
  const auto longer = decide_extend(run, {{}, run.id(), kOldFence, {}}, kNoon);
  EXPECT_EQ(std::get<Extended>(longer.reply).lease_until, kNoon + run.head->lease);
  EXPECT_EQ(longer.next->as<Running>()->lease_until, kNoon + run.head->lease);
  const auto shorter = decide_extend(run, {{}, run.id(), kOldFence, 1s}, kNoon);
  EXPECT_EQ(std::get<Extended>(shorter.reply).lease_until, kNoon + 10s) << "never shortened";
  EXPECT_FALSE(shorter.next);
  for (const Fence fence : {Fence{0}, Fence{6}, Fence{8}})
    EXPECT_EQ(std::get<Error>(decide_extend(run, {{}, run.id(), fence, {}}, kNoon).reply).code, Code::LEASE_LOST);
  for (const State& state : {State{Queued{kNoon}}, State{InDoubt{kNoon}}, State{Completed{kNoon, ""}},
                             State{Failed{kNoon, ""}}, State{Cancelled{kNoon, ""}}})
    EXPECT_EQ(std::get<Error>(decide_extend(a_run(state), {{}, run.id(), kOldFence, {}}, kNoon).reply).code,
              Code::LEASE_LOST);
}

TEST(DecideExtend, DefaultIsTheOwnersLease) {
  const auto leased = [](const latchkey::Run& run) {
    return std::get<Extended>(decide_extend(run, {{}, run.id(), run.fence, {}}, kNoon + 1s).reply).lease_until;
  };
  ClaimRequest request = a_claim();
  request.lease = 5min;
  const auto second = decide_claim(a_run(Queued{kNoon, QueuedBy::failed_attempt}), request, kNewFence, kNoon);
  EXPECT_EQ(leased(std::get<StartAgain>(second).next), kNoon + 1s + 5min) << "not the first claim's";
  const latchkey::Run job = a_job_run(Queued{kNoon});
  EXPECT_EQ(leased(*decide_take(job, TakeRequest{.lease = 7min}, kNewFence, kNoon)), kNoon + 1s + 7min);
  EXPECT_EQ(leased(*decide_take(job, TakeRequest{}, kNewFence, kNoon)), kNoon + 1s + job.head->lease);
}

TEST(DecideExtend, ReportsCancelRequest) {
  Running asked = lease(kNoon + 10s);
  asked.cancel_requested = true;
  const latchkey::Run run = a_run(asked);
  EXPECT_TRUE(std::get<Extended>(decide_extend(run, {{}, run.id(), kOldFence, {}}, kNoon).reply).cancel_requested);
}

struct Deadline {
  const char* name;
  latchkey::Run run;
  Instant at;
  const char* status;
  const char* code;
  Effect effect;
};

latchkey::Run used_up(latchkey::Run run) {
  run.attempt = run.attempts_max;
  return run;
}
latchkey::Run cancelling(latchkey::Run run) {
  std::get<Running>(run.state).cancel_requested = true;
  return run;
}
RunHead with_total(Duration total) {
  RunHead head = a_head();
  head.retry.total = total;  // the first attempt was at noon − 10 min
  return head;
}

const Deadline kDeadlines[] = {
    {"claim_rerun", a_run(lease(kNoon)), kNoon + 24h, "failed", "OUTCOME_UNKNOWN", Effect::unknown},
    {"claim_hold", a_run(lease(kNoon), holding()), kNoon, "in_doubt", "", Effect::none},
    {"claim_used_up", used_up(a_run(lease(kNoon))), kNoon, "failed", "OUTCOME_UNKNOWN", Effect::unknown},
    {"claim_cancelling", cancelling(a_run(lease(kNoon))), kNoon, "cancelled", "CANCELLED", Effect::unknown},
    {"claim_total_over", a_run(lease(kNoon), with_total(1h)), kNoon + 50min + 1ms, "failed", "OUTCOME_UNKNOWN",
     Effect::unknown},
    {"claim_total_over_in_the_lease", a_run(lease(kNoon), with_total(1min)), kNoon, "failed", "OUTCOME_UNKNOWN",
     Effect::unknown},
    {"job_rerun", a_job_run(lease(kNoon)), kNoon, "queued", "", Effect::none},
    {"job_hold", a_job_run(lease(kNoon), holding()), kNoon, "in_doubt", "", Effect::none},
    {"job_used_up", used_up(a_job_run(lease(kNoon))), kNoon, "failed", "OUTCOME_UNKNOWN", Effect::unknown},
    {"job_hold_cancelling", cancelling(a_job_run(lease(kNoon), holding())), kNoon, "cancelled", "CANCELLED",
     Effect::unknown},
    {"queued_claim", a_run(Queued{kNoon, QueuedBy::failed_attempt}), kNoon + 24h, "failed", "MAX_RETRIES_EXCEEDED",
     Effect::none},
    {"queued_claim_unknown", a_run(Queued{kNoon, QueuedBy::doubtful_attempt}), kNoon + 24h, "failed", "OUTCOME_UNKNOWN",
     Effect::unknown},
    {"queued_job_total_over", a_job_run(Queued{kNoon, QueuedBy::failed_attempt}, with_total(1h)), kNoon + 50min + 1ms,
     "failed", "MAX_RETRIES_EXCEEDED", Effect::none},
    {"queued_job_lapsed_total_over", a_job_run(Queued{kNoon, QueuedBy::lease_end}, with_total(1h)), kNoon + 50min + 1ms,
     "failed", "OUTCOME_UNKNOWN", Effect::unknown},
};

class Deadlines : public testing::TestWithParam<Deadline> {};

TEST_P(Deadlines, ApplyAtTheirTime) {
  const Deadline& expected = GetParam();
  EXPECT_EQ(next_deadline(expected.run), expected.at);
  EXPECT_FALSE(decide_deadline(expected.run, expected.at - 1ms));
  const auto next = decide_deadline(expected.run, expected.at);
  ASSERT_TRUE(next);
  EXPECT_EQ(to_string(next->status()), expected.status);
  EXPECT_EQ(next->fence, expected.run.fence);
  EXPECT_EQ(next->attempt, expected.run.attempt);
  if (const auto* failed = next->as<Failed>()) {
    EXPECT_EQ(failed->code, expected.code);
    EXPECT_EQ(failed->effect, expected.effect);
    EXPECT_EQ(failed->at, expected.at);
    EXPECT_FALSE(next->last_error.empty()) << "a dead letter without a reason";
  }
  if (const auto* cancelled = next->as<Cancelled>()) {
    EXPECT_EQ(cancelled->code, expected.code);
    EXPECT_EQ(cancelled->effect, expected.effect);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Deadlines, testing::ValuesIn(kDeadlines),
                         [](const auto& deadline) { return std::string(deadline.param.name); });

TEST(DecideDeadline, UnclaimedRunHasAReason) {
  const auto reason = [](QueuedBy by, std::string last_error = "") {
    latchkey::Run run = a_run(Queued{kNoon, by});
    run.last_error = std::move(last_error);
    return decide_deadline(run, kNoon + 24h)->last_error;
  };
  EXPECT_EQ(reason(QueuedBy::release), "the last attempt was released, and the run was not claimed again within 24 h");
  EXPECT_EQ(reason(QueuedBy::release, "boom"), reason(QueuedBy::release))
      << "boom is not the error of the last attempt";
  EXPECT_EQ(reason(QueuedBy::reopen, "boom"), "the run was opened again, and was not claimed within 24 h");
  EXPECT_EQ(reason(QueuedBy::failed_attempt, "boom"), "boom");
  EXPECT_EQ(reason(QueuedBy::failed_attempt), "the last attempt failed, and no further attempt started in time");
  EXPECT_EQ(reason(QueuedBy::lease_end), "the lease expired without a result");
}

TEST(DecideDeadline, JobsInDoubtAndSettledRunsHaveNone) {
  for (const latchkey::Run& run : {a_job_run(Queued{kNoon}), a_run(InDoubt{kNoon}), a_run(Completed{kNoon, ""}),
                                   a_run(Failed{kNoon, ""}), a_run(Cancelled{kNoon, ""})}) {
    EXPECT_FALSE(next_deadline(run));
    EXPECT_FALSE(decide_deadline(run, kNoon + 24h * 365));
  }
}

TEST(DecideTake, NoRetryStartsAfterTheTotal) {
  const latchkey::Run queued = a_job_run(Queued{kNoon, QueuedBy::failed_attempt}, with_total(10min));
  EXPECT_TRUE(decide_take(queued, TakeRequest{}, kNewFence, kNoon));
  EXPECT_FALSE(decide_take(queued, TakeRequest{}, kNewFence, kNoon + 1ms));
  const latchkey::Run released = a_job_run(Queued{kNoon, QueuedBy::release}, with_total(10min));
  EXPECT_TRUE(decide_take(released, TakeRequest{}, kNewFence, kNoon + 1h))
      << "an attempt after a release is not a retry";
}

struct Waiting {
  OnFailed mode;
  const char* after_completed;
  const char* after_failed;
};

TEST(DecidePredecessor, ReleasesSkipsRunsOrFails) {
  const auto word = [](const std::optional<latchkey::Run>& next) -> std::string {
    if (!next) return "waits";
    return next->as<Queued>() ? "released" : std::string(to_string(next->status()));
  };
  const latchkey::Run completed = a_run(Completed{kNoon, ""}), failed = a_run(Failed{kNoon, "X"}),
                      cancelled = a_run(Cancelled{kNoon, "CANCELLED"});
  for (const auto& [mode, otherwise] : {std::pair{OnFailed::wait, "waits"},
                                        {OnFailed::skip, "cancelled"},
                                        {OnFailed::run, "released"},
                                        {OnFailed::fail, "failed"}}) {
    latchkey::Run run = a_job_run(Queued{kNoon}, on_failed(mode));
    run.waiting_for = 1;
    EXPECT_EQ(word(decide_predecessor(run, completed, kNoon)), "released");
    EXPECT_EQ(word(decide_predecessor(run, failed, kNoon)), otherwise);
    EXPECT_EQ(word(decide_predecessor(run, cancelled, kNoon)), otherwise);
    for (const State& open : {State{Queued{kNoon}}, State{lease(kNoon)}, State{InDoubt{kNoon}}})
      EXPECT_EQ(word(decide_predecessor(run, a_run(open), kNoon)), "waits");
    if (const auto next = decide_predecessor(run, failed, kNoon); next && next->as<Cancelled>())
      EXPECT_EQ(next->as<Cancelled>()->code, "PREDECESSOR_FAILED");
    if (const auto next = decide_predecessor(run, failed, kNoon); next && next->as<Failed>()) {
      EXPECT_EQ(next->as<Failed>()->code, "PREDECESSOR_FAILED");
      EXPECT_EQ(next->as<Failed>()->effect, Effect::none);
      EXPECT_FALSE(next->last_error.empty());
    }
  }
}

TEST(DecidePredecessor, ChangesNothingThatDoesNotWait) {
  const latchkey::Run completed = a_run(Completed{kNoon, ""});
  EXPECT_FALSE(decide_predecessor(a_job_run(Queued{kNoon}), completed, kNoon));
  latchkey::Run cancelled = a_job_run(Cancelled{kNoon, ""});
  cancelled.waiting_for = 1;
  EXPECT_FALSE(decide_predecessor(cancelled, completed, kNoon));
}

TEST(MayPurge, NeedsWindowAndRetentionToBeOver) {
  const Retention retention{.done = 48h, .failed = 72h};
  RunHead head = a_head();
  head.window = 96h;
  const latchkey::Run completed = a_run(Completed{kNoon, ""}, head);
  EXPECT_FALSE(may_purge(completed, retention, kNoon + 96h - 1ms));
  EXPECT_TRUE(may_purge(completed, retention, kNoon + 96h));
  head.window = 1h;
  EXPECT_FALSE(may_purge(a_run(Completed{kNoon, ""}, head), retention, kNoon + 48h - 1ms));
  EXPECT_TRUE(may_purge(a_run(Completed{kNoon, ""}, head), retention, kNoon + 48h));
  EXPECT_TRUE(may_purge(a_run(Cancelled{kNoon, ""}), retention, kNoon + 48h));
  EXPECT_FALSE(may_purge(a_run(Failed{kNoon, ""}), retention, kNoon + 72h - 1ms));
  EXPECT_TRUE(may_purge(a_run(Failed{kNoon, ""}), retention, kNoon + 72h));
  EXPECT_FALSE(may_purge(a_run(Failed{kNoon, ""}), {.failed = Duration::max()}, kNoon + 24h * 999))
      << "infinite retention";
  for (const State& open : {State{Queued{kNoon}}, State{lease(kNoon)}, State{InDoubt{kNoon}}})
    EXPECT_FALSE(may_purge(a_run(open), retention, kNoon + 24h * 999));
}

}  // namespace
}  // namespace latchkey
