// Every (status × ending) pair; repeated settles, late settles and used-up attempts.
#include <gtest/gtest.h>

#include "model/decide.hpp"
#include "model/endings.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

const Running kRunning{.started_at = kNoon - 1min, .lease_until = kNoon + 1min};

Fail fail_with(std::string message) { return Fail{.message = std::move(message), .code = "E"}; }
Fail permanent() { return Fail{.message = "no", .code = "E", .retryable = false}; }
Fail unknown() { return Fail{.message = "lost", .code = "E", .outcome_unknown = true}; }

SettleDecision settle(const latchkey::Run& run, Ending ending, Fence fence = kOldFence, Instant now = kNoon) {
  return decide_settle(run, SettleRequest{{}, run.id(), fence, std::move(ending)}, no_jitter, now);
}

// The result of a settle as a word: the new status, "same" for a repeat, or the code of the refusal.
std::string word(const SettleDecision& decision) {
  if (decision.refused) return std::string(facts(decision.refused->code).name);
  return decision.next ? std::string(to_string(decision.next->status())) : "same";
}

struct Pair {
  const char* state_name;
  State state;
  const char *complete, *fail, *release, *snooze;
};

const Pair kPairs[] = {
    {"running", kRunning, "completed", "queued", "queued", "queued"},
    {"lapsed", Running{.lease_until = kNoon - 1h}, "completed", "queued", "queued", "queued"},
    {"cancelling", Running{.lease_until = kNoon + 1h, .cancel_requested = true}, "completed", "cancelled", "cancelled",
     "cancelled"},
    {"in_doubt", InDoubt{kNoon - 1h}, "completed", "queued", "queued", "queued"},
    {"completed", Completed{kNoon, "r"}, "same", "ALREADY_SETTLED", "ALREADY_SETTLED", "ALREADY_SETTLED"},
    {"failed", Failed{kNoon, "EXECUTION_ERROR"}, "ALREADY_SETTLED", "same", "ALREADY_SETTLED", "ALREADY_SETTLED"},
    {"cancelled", Cancelled{kNoon, "CANCELLED"}, "ALREADY_SETTLED", "same", "same", "same"},
    {"queued_again", Queued{kNoon + 1h, QueuedBy::failed_attempt}, "LEASE_LOST", "same", "queued", "LEASE_LOST"},
    {"due_again", Queued{kNoon, QueuedBy::failed_attempt}, "LEASE_LOST", "same", "same", "LEASE_LOST"},
    {"released", Queued{kNoon, QueuedBy::release}, "LEASE_LOST", "LEASE_LOST", "same", "same"},
    {"lease_ended", Queued{kNoon, QueuedBy::lease_end}, "LEASE_LOST", "LEASE_LOST", "LEASE_LOST", "LEASE_LOST"},
    {"reopened", Queued{kNoon, QueuedBy::reopen}, "LEASE_LOST", "LEASE_LOST", "LEASE_LOST", "LEASE_LOST"},
};

class SettlePairs : public testing::TestWithParam<Pair> {};

// covers: A5
TEST_P(SettlePairs, EndAsTheStateMachineShows) {
  const Pair& pair = GetParam();
  const latchkey::Run run = a_run(pair.state);
  EXPECT_EQ(word(settle(run, Complete{"x"})), pair.complete);
  EXPECT_EQ(word(settle(run, fail_with("x"))), pair.fail);
  EXPECT_EQ(word(settle(run, Release{})), pair.release);
  EXPECT_EQ(word(settle(run, Snooze{1min})), pair.snooze);
}

TEST_P(SettlePairs, StaleFenceGetsLeaseLost) {
  const latchkey::Run run = a_run(GetParam().state);
  for (const Fence fence : {Fence{0}, Fence{6}, Fence{8}})
    EXPECT_EQ(word(settle(run, Complete{"x"}, fence)), "LEASE_LOST") << static_cast<std::uint64_t>(fence);
}

TEST_P(SettlePairs, RepeatedSettleChangesNothing) {
  RunHead holding = a_head();
  holding.on_doubt = OnDoubt::hold;
  for (const RunHead& head : {a_head(), holding})
    for (const Ending& ending : {Ending{Complete{"x"}}, Ending{fail_with("x")}, Ending{permanent()}, Ending{unknown()},
                                 Ending{Release{}}, Ending{Snooze{1min}}}) {
      const SettleDecision first = settle(a_run(GetParam().state, head), ending);
      if (!first.next) continue;
      const SettleDecision again = settle(*first.next, ending, kOldFence, kNoon + 1s);
      EXPECT_EQ(word(again), "same") << "ending " << ending.index() << " from " << GetParam().state_name;
    }
}

INSTANTIATE_TEST_SUITE_P(Endings, SettlePairs, testing::ValuesIn(kPairs),
                         [](const auto& pair) { return std::string(pair.param.state_name); });

TEST(DecideSettle, RunWithoutOwnerCannotBeSettled) {
  latchkey::Run run = *make_run_in(KeyState::queued_job);
  EXPECT_EQ(word(settle(run, Complete{"x"}, Fence{0})), "LEASE_LOST");
}

TEST(DecideSettle, FailedAttemptSetsDelayAndError) {
  latchkey::Run run = a_run(kRunning);
  for (const auto& [attempt, delay] : {std::pair{1u, 1s}, {2u, 5s}, {3u, 25s}}) {
    run.attempt = attempt;
    run.failures = attempt - 1;
    const auto decision = settle(run, fail_with("boom"));
    ASSERT_TRUE(decision.next && decision.next->as<Queued>());
    EXPECT_EQ(*decision.next->as<Queued>(), (Queued{kNoon + delay, QueuedBy::failed_attempt}));
    EXPECT_EQ(decision.next->last_error, "boom");
    EXPECT_EQ(decision.next->last_error_code, "E");
    EXPECT_EQ(decision.next->attempt, attempt);
    EXPECT_EQ(decision.next->failures, attempt);
  }
  run.attempt = 4;
  const auto used_up = settle(run, fail_with("boom"));
  ASSERT_TRUE(used_up.next && used_up.next->as<Failed>());
  EXPECT_EQ(*used_up.next->as<Failed>(), (Failed{kNoon, "MAX_RETRIES_EXCEEDED", Effect::none}));
}

TEST(DecideSettle, OnlyFailuresLengthenTheDelay) {
  latchkey::Run run = a_run(kRunning);
  run.attempts_max = 20;
  const auto end_attempt = [&](const Ending& ending) {
    run = *settle(run, ending).next;
    const Duration delay = run.as<Queued>()->due_at - kNoon;
    run.attempt += 1;
    run.state = kRunning;
    return delay;
  };
  end_attempt(Release{});
  end_attempt(Snooze{1min});
  EXPECT_EQ(end_attempt(fail_with("a")), 1s);
  end_attempt(Release{});
  run.attempt += 1;  // a lease that expired
  EXPECT_EQ(end_attempt(fail_with("b")), 5s);
  EXPECT_EQ(end_attempt(unknown()), 25s);
}

TEST(DecideSettle, PermanentErrorFailsAtOnce) {
  const auto decision = settle(a_run(kRunning), permanent());
  EXPECT_EQ(*decision.next->as<Failed>(), (Failed{kNoon, "EXECUTION_ERROR", Effect::none}));
}

TEST(DecideSettle, UnknownOutcomeIsHeldOrRetried) {
  RunHead holding = a_head();
  holding.on_doubt = OnDoubt::hold;
  EXPECT_EQ(*settle(a_run(kRunning, holding), unknown()).next->as<InDoubt>(), InDoubt{kNoon});
  EXPECT_TRUE(settle(a_run(kRunning), unknown()).next->as<Queued>());
  latchkey::Run last = a_run(kRunning);
  last.attempt = last.attempts_max;
  EXPECT_EQ(*settle(last, unknown()).next->as<Failed>(), (Failed{kNoon, "OUTCOME_UNKNOWN", Effect::unknown}));
}

TEST(DecideSettle, LateFailureDoesNotChangeDoubtSince) {
  RunHead holding = a_head();
  holding.on_doubt = OnDoubt::hold;
  const latchkey::Run doubted = a_run(InDoubt{kNoon - 1h}, holding);
  const auto reported = settle(doubted, unknown());
  ASSERT_TRUE(reported.next) << "the owner's error is recorded";
  EXPECT_EQ(reported.next->as<InDoubt>()->since, kNoon - 1h);
  EXPECT_EQ(reported.next->last_error, "lost");
  EXPECT_EQ(word(settle(*reported.next, unknown())), "same");
}

std::string stored_error(std::string message) {
  return settle(a_run(kRunning), fail_with(std::move(message))).next->last_error;
}

TEST(DecideSettle, LongMessageIsTruncated) {
  const std::string longest(kErrorBytesMax, 'x');
  EXPECT_EQ(stored_error(longest), longest);
  EXPECT_EQ(stored_error(longest + "y"), std::string(kErrorBytesMax - 64, 'x') + "\n… (65 more bytes were not stored)");
  EXPECT_LE(stored_error(std::string(1 << 20, 'x')).size(), kErrorBytesMax);
}

TEST(DecideSettle, LongMessageIsCutBetweenCharacters) {
  constexpr std::size_t cut = kErrorBytesMax - 64;
  const auto end_of = [&](std::size_t plain, std::string_view character) {
    std::string message(plain, 'x');
    while (message.size() < 2 * kErrorBytesMax) message += character;
    const std::string text = stored_error(message);
    return text.find("\n…");
  };
  EXPECT_EQ(end_of(cut, "é"), cut);
  EXPECT_EQ(end_of(cut - 1, "é"), cut - 1);
  EXPECT_EQ(end_of(cut - 3, "🔑"), cut - 3);
  EXPECT_EQ(end_of(cut - 4, "🔑"), cut);
  EXPECT_EQ(end_of(cut - 9, "\x80"), cut) << "without a character's first byte the cut is anywhere";
}

TEST(DecideSettle, RepeatedLongMessageIsARepeat) {
  RunHead holding = a_head();
  holding.on_doubt = OnDoubt::hold;
  Fail fail = unknown();
  fail.message.assign(1 << 20, 'x');
  const auto first = settle(a_run(kRunning, holding), fail);
  ASSERT_TRUE(first.next && first.next->as<InDoubt>());
  EXPECT_EQ(word(settle(*first.next, fail)), "same");
}

TEST(DecideSettle, RetryAfterIsAppliedWithinLimits) {
  const auto due = [](std::optional<Duration> retry_after) {
    Fail fail = fail_with("busy");
    fail.retry_after = retry_after;
    return settle(a_run(kRunning), fail).next->as<Queued>()->due_at - kNoon;
  };
  EXPECT_EQ(due({}), 1s);
  EXPECT_EQ(due(10s), 10s);
  EXPECT_EQ(due(100ms), 1s) << "never sooner than the policy";
  EXPECT_EQ(due(-1h), 1s);
  EXPECT_EQ(due(24h * 400), kRetryAfterMax);
  EXPECT_EQ(due(Duration::max()), kRetryAfterMax);
}

TEST(DecideSettle, NoRetryIsPlannedAfterTheTotal) {
  RunHead head = a_head();
  head.retry.total = 10min + 1s;  // the first attempt was at noon − 10 min, the delay is 1 s
  EXPECT_TRUE(settle(a_run(kRunning, head), fail_with("x")).next->as<Queued>());
  head.retry.total = 10min + 999ms;
  EXPECT_TRUE(settle(a_run(kRunning, head), fail_with("x")).next->as<Failed>());
  head.retry.total = Duration::max() - 1ms;
  EXPECT_TRUE(settle(a_run(kRunning, head), fail_with("x")).next->as<Queued>()) << "a huge total must not overflow";
}

TEST(DecideSettle, ReleaseAndSnoozeAllowOneMoreAttempt) {
  for (const auto& [ending, due] : {std::pair{Ending{Release{}}, kNoon}, {Ending{Snooze{5min}}, kNoon + 5min}}) {
    latchkey::Run run = a_run(kRunning);
    run.attempt = run.attempts_max;
    const latchkey::Run next = *settle(run, ending).next;
    EXPECT_EQ(*next.as<Queued>(), (Queued{due, QueuedBy::release}));
    EXPECT_EQ(next.attempts_max, run.attempts_max + 1);
    EXPECT_EQ(next.attempt, run.attempt);
    EXPECT_EQ(next.fence, run.fence);
  }
  EXPECT_GT(settle(a_run(kRunning), Snooze{Duration::max()}).next->as<Queued>()->due_at, kNoon);
}

TEST(DecideSettle, ReleaseCancelsTheRetryDelay) {
  for (const QueuedBy by : {QueuedBy::failed_attempt, QueuedBy::doubtful_attempt}) {
    const latchkey::Run run = a_run(Queued{kNoon + 25s, by});
    const latchkey::Run next = *settle(run, Release{}).next;
    EXPECT_EQ(*next.as<Queued>(), (Queued{kNoon, by})) << "the doubt about the effect does not change";
    EXPECT_EQ(next.attempts_max, run.attempts_max) << "the failed attempt counts";
    EXPECT_EQ(next.attempt, run.attempt);
    EXPECT_EQ(next.fence, run.fence);
    EXPECT_EQ(word(settle(next, Release{}, kOldFence, kNoon + 1s)), "same");
    EXPECT_EQ(word(settle(next, fail_with("x"), kOldFence, kNoon + 1s)), "same")
        << "a repeat of the failure before the release";
  }
  latchkey::Run job = a_run(Queued{kNoon + 25s, QueuedBy::failed_attempt});
  job.origin = Origin::enqueued;
  EXPECT_EQ(word(settle(job, Release{})), "LEASE_LOST") << "a worker does not wait for the next attempt of its job";
}

TEST(DecideSettle, UnlimitedBackoffDoesNotOverflow) {
  RunHead head = a_head();
  head.retry = {.retries = 100, .ceiling = Duration::max()};
  latchkey::Run run = a_run(kRunning, head);
  run.attempt = 99;
  EXPECT_GT(settle(run, fail_with("x")).next->as<Queued>()->due_at, kNoon);
}

TEST(DecideSettle, CancelledOwnerReportsItsEffect) {
  const latchkey::Run run = a_run(Running{.lease_until = kNoon + 1s, .cancel_requested = true});
  EXPECT_EQ(settle(run, Release{}).next->as<Cancelled>()->effect, Effect::none);
  EXPECT_EQ(settle(run, unknown()).next->as<Cancelled>()->effect, Effect::unknown);
  EXPECT_EQ(settle(run, Complete{"done"}).next->as<Completed>()->result, "done");
}

}  // namespace
}  // namespace latchkey
