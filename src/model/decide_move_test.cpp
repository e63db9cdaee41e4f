// Every (status × operator action) pair: allowed actions change the run, others are refused, repeats change nothing.
#include <gtest/gtest.h>

#include "model/decide.hpp"
#include "model/endings.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

const Uuid kFresh = make_uuid_v7(kNoon, 500, 500);

MoveDecision move(const latchkey::Run& run, const Move& action, Instant now = kNoon) {
  return decide_move(run, action, kFresh, now);
}

std::string word(const MoveDecision& decision) {
  if (decision.refused) return std::string(facts(decision.refused->code).name);
  return decision.next ? std::string(to_string(decision.next->status())) : "same";
}

struct Pair {
  const char* state_name;
  State state;
  const char *cancel, *retry, *completed, *failed, *rerun;
};
constexpr auto kNo = "MOVE_REFUSED";

const Pair kPairs[] = {
    {"queued", Queued{kNoon}, "cancelled", kNo, kNo, kNo, kNo},
    {"queued_again", Queued{kNoon, QueuedBy::failed_attempt}, "cancelled", kNo, kNo, kNo, kNo},
    {"reopened", Queued{kNoon, QueuedBy::reopen}, "cancelled", "same", kNo, kNo, "same"},
    {"running", Running{.lease_until = kNoon + 1min}, "running", kNo, kNo, kNo, kNo},
    {"lapsed", Running{.lease_until = kNoon}, "cancelled", kNo, kNo, kNo, kNo},
    {"cancelling", Running{.lease_until = kNoon + 1min, .cancel_requested = true}, "same", kNo, kNo, kNo, kNo},
    {"in_doubt", InDoubt{kNoon}, "cancelled", kNo, "completed", "failed", "queued"},
    {"completed", Completed{kNoon, "r"}, kNo, kNo, "same", kNo, kNo},
    {"failed", Failed{kNoon, "EXECUTION_ERROR"}, "cancelled", "queued", "completed", "same", kNo},
    {"cancelled", Cancelled{kNoon, "CANCELLED"}, "same", kNo, kNo, kNo, kNo},
};

class MovePairs : public testing::TestWithParam<Pair> {};

// covers: A5
TEST_P(MovePairs, ChangeAsTheStateMachineShows) {
  const Pair& pair = GetParam();
  const latchkey::Run run = a_run(pair.state);
  EXPECT_EQ(word(move(run, CancelByHand{})), pair.cancel);
  EXPECT_EQ(word(move(run, RetryByHand{})), pair.retry);
  EXPECT_EQ(word(move(run, ResolveCompleted{"r"})), pair.completed);
  EXPECT_EQ(word(move(run, ResolveFailed{"n"})), pair.failed);
  EXPECT_EQ(word(move(run, ResolveRerun{})), pair.rerun);
}

TEST_P(MovePairs, RepeatedActionChangesNothing) {
  for (const Move& action : {Move{CancelByHand{}}, Move{RetryByHand{}}, Move{RetryByHand{.fresh_effect_key = true}},
                             Move{ResolveCompleted{"r"}}, Move{ResolveFailed{"n"}}, Move{ResolveRerun{}}}) {
    const MoveDecision first = move(a_run(GetParam().state), action);
    if (!first.next) continue;
    EXPECT_EQ(word(move(*first.next, action, kNoon + 1s)), "same") << "action " << action.index();
  }
}

INSTANTIATE_TEST_SUITE_P(Moves, MovePairs, testing::ValuesIn(kPairs),
                         [](const auto& pair) { return std::string(pair.param.state_name); });

TEST(DecideMove, CancelRecordsWhetherEffectIsKnown) {
  const auto effect = [](State state) { return move(a_run(state), CancelByHand{}).next->as<Cancelled>()->effect; };
  EXPECT_EQ(effect(Queued{kNoon}), Effect::none);
  EXPECT_EQ(effect(Queued{kNoon, QueuedBy::failed_attempt}), Effect::none);
  EXPECT_EQ(effect(Queued{kNoon, QueuedBy::release}), Effect::none);
  EXPECT_EQ(effect(Queued{kNoon, QueuedBy::lease_end}), Effect::unknown);
  EXPECT_EQ(effect(Queued{kNoon, QueuedBy::doubtful_attempt}), Effect::unknown);
  EXPECT_EQ(effect(Running{.lease_until = kNoon}), Effect::unknown);
  EXPECT_EQ(effect(InDoubt{kNoon}), Effect::unknown);
  EXPECT_EQ(effect(Failed{kNoon, "X", Effect::none}), Effect::none);
  EXPECT_EQ(effect(Failed{kNoon, "X", Effect::unknown}), Effect::unknown);
}

TEST(DecideMove, RetryOpensGenerationWithSameEffectKey) {
  latchkey::Run failed = a_job_run(Failed{kNoon, "MAX_RETRIES_EXCEEDED"});
  failed.attempt = failed.attempts_total = 4;
  failed.attempts_max = 9;  // some attempts were released
  const latchkey::Run next = *move(failed, RetryByHand{}).next;
  EXPECT_EQ(next.generation, 2u);
  EXPECT_EQ(next.attempt, 0u);
  EXPECT_EQ(next.attempts_max, 4u);
  EXPECT_EQ(next.attempts_total, 4u);
  EXPECT_EQ(next.fence, failed.fence);
  EXPECT_EQ(next.origin, Origin::enqueued);
  EXPECT_EQ(next.effect_key, failed.id());
  EXPECT_EQ(move(failed, RetryByHand{.fresh_effect_key = true}).next->effect_key, kFresh);
}

TEST(DecideMove, FreshEffectKeyUntilAnAttemptStarts) {
  const latchkey::Run plain = *move(a_job_run(Failed{kNoon, "X"}), RetryByHand{}).next;
  const MoveDecision fresh = move(plain, RetryByHand{.fresh_effect_key = true});
  ASSERT_TRUE(fresh.next);
  EXPECT_EQ(fresh.next->effect_key, kFresh);
  EXPECT_EQ(fresh.next->generation, 2u) << "the same generation";
  EXPECT_EQ(word(move(*fresh.next, RetryByHand{.fresh_effect_key = true}, kNoon + 1s)), "same");
  EXPECT_EQ(word(move(*fresh.next, RetryByHand{}, kNoon + 1s)), "same");
  latchkey::Run later = *fresh.next;  // failed again: its effect key is from the previous generation
  later.state = Queued{kNoon + 1h, QueuedBy::reopen};
  EXPECT_EQ(word(move(later, RetryByHand{.fresh_effect_key = true}, kNoon + 1h)), "queued");
  const latchkey::Run running = *decide_take(plain, TakeRequest{}, kNewFence, kNoon);
  EXPECT_EQ(word(move(running, RetryByHand{.fresh_effect_key = true})), kNo);
}

TEST(DecideMove, OperatorReopensCancelledInternalRun) {
  RunHead head = a_head();
  head.made_by = MadeBy::latchkey;
  const auto next = move(a_job_run(Cancelled{kNoon, "CANCELLED"}, head), RetryByHand{}).next;
  ASSERT_TRUE(next && next->as<Queued>());
  EXPECT_EQ(next->generation, 2u);
}

TEST(DecideMove, RetriedRunWaitsForNoPredecessor) {
  latchkey::Run failed = a_job_run(Failed{kNoon, "PREDECESSOR_FAILED"});
  failed.waiting_for = 2;
  const latchkey::Run next = *move(failed, RetryByHand{}).next;
  EXPECT_EQ(next.waiting_for, 0u);
  EXPECT_TRUE(decide_take(next, TakeRequest{}, kNewFence, kNoon));
}

TEST(DecideMove, RerunAllowsOneMoreAttempt) {
  latchkey::Run doubted = a_run(InDoubt{kNoon});
  doubted.attempt = doubted.attempts_max;
  const latchkey::Run next = *move(doubted, ResolveRerun{}).next;
  EXPECT_EQ(next.generation, 1u);
  EXPECT_EQ(next.attempts_max, doubted.attempt + 1);
}

TEST(DecideMove, RerunIgnoresTheTotal) {
  RunHead head = a_head();
  head.retry.total = 1ms;
  const latchkey::Run next = *move(a_job_run(InDoubt{kNoon}, head), ResolveRerun{}).next;
  EXPECT_FALSE(decide_deadline(next, kNoon));
  EXPECT_TRUE(decide_take(next, TakeRequest{}, kNewFence, kNoon));
}

TEST(DecideMove, ResolvedFailureStoresTheNote) {
  const latchkey::Run next = *move(a_run(InDoubt{kNoon}), ResolveFailed{"the bank says no"}).next;
  EXPECT_EQ(*next.as<Failed>(), (Failed{kNoon, "EXECUTION_ERROR", Effect::none}));
  EXPECT_EQ(next.last_error, "the bank says no");
  const latchkey::Run wordy = *move(a_run(InDoubt{kNoon}), ResolveFailed{std::string(1 << 20, 'x')}).next;
  EXPECT_LE(wordy.last_error.size(), kErrorBytesMax);
}

}  // namespace
}  // namespace latchkey
