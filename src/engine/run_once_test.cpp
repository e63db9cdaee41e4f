#include "engine/run_once.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "engine/testing.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

struct RunOnceTest : testing::Test {
  RunOnceReply run(SideEffect& effect, ClaimRequest request, RunOnceSettings settings = {}) {
    return play(bench, run_once(bench.flaky, bench.clock, bench.random, std::move(request), effect, settings)).value();
  }
  Bench bench;
};

TEST_F(RunOnceTest, RunsOnceThenReplays) {
  ScriptedEffect effect{EffectDone{"42", {}}};
  EXPECT_TRUE(std::get<Ran>(run(effect, claim_of("a"))).run.as<Completed>());
  const auto again = run(effect, claim_of("a"));
  EXPECT_EQ(std::get<Replay>(again).run.as<Completed>()->result, "42");
  EXPECT_EQ(effect.runs, 1u);
}

// covers: A6
TEST_F(RunOnceTest, RetriesByPolicyAndThenFails) {
  ScriptedEffect effect{EffectFailed{.message = "no"}};
  ClaimRequest request = claim_of("a");
  request.retry = {.retries = 2, .first = 1s, .factor = 5, .ceiling = 30s};
  const auto reply = run(effect, request);
  const Ran& ran = std::get<Ran>(reply);
  EXPECT_EQ(ran.run.as<Failed>()->code, "MAX_RETRIES_EXCEEDED");
  EXPECT_TRUE(ran.dead_letter);
  EXPECT_EQ(effect.runs, 3u);
  EXPECT_GE(bench.clock.elapsed(), 6s);
}

TEST_F(RunOnceTest, UnknownOutcomeIsRetriedUnderRerun) {
  ScriptedEffect effect{EffectFailed{.message = "killed", .outcome_unknown = true}};
  ClaimRequest request = claim_of("a");
  request.retry = {.retries = 1, .first = 1s};
  const auto reply = run(effect, request, {.retry_unknown = true});
  EXPECT_EQ(std::get<Ran>(reply).run.as<Failed>()->effect, Effect::unknown);
  EXPECT_EQ(effect.runs, 2u);
}

TEST_F(RunOnceTest, WithoutRetryReturnsTheQueuedRun) {
  ScriptedEffect effect{EffectFailed{.message = "no"}};
  EXPECT_TRUE(std::get<Ran>(run(effect, claim_of("a"), {.retry = false})).run.as<Queued>());
}

TEST_F(RunOnceTest, LostClaimRepliesAreRetriedWithOneId) {
  ScriptedEffect effect{EffectDone{"42", {}}};
  bench.flaky.lose_replies = 2;
  EXPECT_TRUE(std::get<Ran>(run(effect, claim_of("a"))).run.as<Completed>());
  EXPECT_EQ(std::set(bench.flaky.claim_ids.begin(), bench.flaky.claim_ids.end()).size(), 1u);
  EXPECT_EQ(effect.last_attempt, 1u);
}

TEST_F(RunOnceTest, ClaimEndsAfterPatience) {
  ScriptedEffect effect{EffectDone{"42", {}}};
  bench.flaky.lose_replies = 1'000'000;
  auto reply = play(bench, run_once(bench.flaky, bench.clock, bench.random, claim_of("a"), effect, {.patience = 3s}));
  EXPECT_FALSE(reply);
  EXPECT_EQ(effect.runs, 0u);
}

// The reply to the claim took longer than its lease, so a heartbeat must confirm the lease. All heartbeats are lost.
TEST_F(RunOnceTest, UnconfirmedLeaseIsRetriedUntilPatience) {
  ClaimRequest request = claim_of("a");
  request.lease = 1s;
  request.retry.retries = 1000;
  ScriptedEffect effect{EffectDone{"42", {}}};
  bench.flaky.lose_replies = 5;
  bench.flaky.lose_extends = 1'000'000;
  const auto reply = play(bench, run_once(bench.flaky, bench.clock, bench.random, request, effect, {.patience = 10s}));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::REPLY_LOST);
  EXPECT_EQ(effect.runs, 0u);
  EXPECT_LT(bench.flaky.extends, 20);

  bench.flaky.lose_replies = 5;
  bench.flaky.lose_extends = 2;
  request.key = "b", request.key_hash = claim_of("b").key_hash;
  EXPECT_TRUE(std::get<Ran>(run(effect, request)).run.as<Completed>());
}

TEST_F(RunOnceTest, PermanentRefusalIsReturnedAtOnce) {
  EnqueueRequest tick;
  tick.function = "f";
  tick.key = "a";
  tick.key_hash = claim_of("a").key_hash;
  tick.guard = Guard::once;
  tick.made_by = MadeBy::latchkey;
  RunId id;
  bench.store.enqueue({tick}, [&](auto replies) { id = std::get<Enqueued>(replies->front()).run.id(); });
  bench.store.move({{}, id, CancelByHand{}}, [](auto) {});
  ScriptedEffect effect{EffectDone{}};
  const auto reply = run(effect, claim_of("a"), {.wait = true, .wait_max = 10s});
  EXPECT_EQ(std::get<Busy>(reply).code, Code::MOVE_REFUSED);
  EXPECT_EQ(bench.clock.elapsed(), 0s) << "only an operator can change this";
}

TEST_F(RunOnceTest, ReleasedAttemptsDoNotLengthenDelay) {
  ScriptedEffect released{EffectInterrupted{}}, failing{EffectFailed{.message = "no"}};
  ClaimRequest request = claim_of("a");
  request.retry = {.retries = 1, .first = 1s, .factor = 60, .ceiling = 1h};
  for (int i = 0; i < 3; ++i) run(released, request);
  EXPECT_TRUE(std::get<Ran>(run(failing, request)).run.as<Failed>());
  EXPECT_EQ(bench.clock.elapsed(), 1s);
}

TEST_F(RunOnceTest, LostSettleRepliesAreRetried) {
  ScriptedEffect effect{EffectDone{"42", {}}};
  effect.on_run = [&] { bench.flaky.lose_replies = 3; };
  EXPECT_TRUE(std::get<Ran>(run(effect, claim_of("a"))).run.as<Completed>());
  EXPECT_EQ(effect.runs, 1u);
}

TEST_F(RunOnceTest, HeartbeatsWhileTheEffectRuns) {
  ScriptedEffect effect{EffectDone{"42", {}}};
  effect.bench = &bench;
  effect.takes = 10s;
  ClaimRequest request = claim_of("a");
  request.lease = 3s;
  EXPECT_TRUE(std::get<Ran>(run(effect, request)).run.as<Completed>());
  EXPECT_GE(bench.flaky.extends, 9);
  EXPECT_FALSE(effect.stopped);
}

TEST_F(RunOnceTest, LostHeartbeatsStopTheEffect) {
  ScriptedEffect effect{EffectInterrupted{}};
  effect.bench = &bench;
  effect.takes = 100s;
  effect.on_run = [&] { bench.flaky.lose_replies = 40; };
  ClaimRequest request = claim_of("a");
  request.lease = 3s;
  run(effect, request, {.retry = false});
  EXPECT_EQ(effect.stopped, StopReason::lease_lost);
  EXPECT_LE(effect.stopped_at, 3s);
}

TEST_F(RunOnceTest, CancelRequestStopsTheEffect) {
  ScriptedEffect effect{EffectInterrupted{}};
  effect.bench = &bench;
  effect.takes = 100s;
  effect.on_run = [&] {
    const auto page = bench.store.list({});
    bench.store.move({.tenant = "default", .id = page->runs.front().id(), .move = CancelByHand{}},
                     [](const Result<MoveReply>&) {});
  };
  ClaimRequest request = claim_of("a");
  request.lease = 3s;
  EXPECT_TRUE(std::get<Ran>(run(effect, request)).run.as<Cancelled>());
  EXPECT_EQ(effect.stopped, StopReason::cancel_requested);
}

TEST_F(RunOnceTest, CancelOfALongLeaseTakesTwoSeconds) {
  ScriptedEffect effect{EffectInterrupted{}};
  effect.bench = &bench;
  effect.takes = 1h;
  effect.on_run = [&] {
    const auto page = bench.store.list({});
    bench.store.move({.tenant = "default", .id = page->runs.front().id(), .move = CancelByHand{}},
                     [](const Result<MoveReply>&) {});
  };
  ClaimRequest request = claim_of("a");
  request.lease = 24h;
  EXPECT_TRUE(std::get<Ran>(run(effect, request)).run.as<Cancelled>());
  EXPECT_LE(effect.stopped_at, 2s);
}

// The store was unreachable for longer than the lease; its sweep failed the run before the settle arrived.
TEST_F(RunOnceTest, SettleAfterTheLeaseSaysThatTheRunEnded) {
  ScriptedEffect effect{EffectDone{"42", {}}};
  ClaimRequest request = claim_of("a");
  request.lease = 1s;
  request.retry = kNoRetries;
  effect.on_run = [&] {
    bench.clock.pass(2s);
    bench.store.sweep(10, [](const Result<Swept>&) {});
  };
  const auto reply = run(effect, request);
  EXPECT_EQ(std::get<LostLease>(reply).reason, Code::ALREADY_SETTLED);
}

TEST_F(RunOnceTest, ExceptionIsAnUnknownOutcome) {
  ScriptedEffect effect{EffectDone{}};
  effect.throws = true;
  ClaimRequest request = claim_of("a");
  request.on_doubt = OnDoubt::hold;
  EXPECT_TRUE(std::get<Ran>(run(effect, request)).run.as<InDoubt>());
  EXPECT_TRUE(std::holds_alternative<InDoubtReply>(run(effect, request)));
}

// covers: B13
TEST_F(RunOnceTest, WaitsForTheOtherOwnersOutcome) {
  ScriptedEffect slow{EffectDone{"42", {}}}, other{EffectDone{"no", {}}};
  slow.bench = &bench;
  slow.takes = 5s;
  std::optional<Result<RunOnceReply>> first, refused, waited;
  const auto start = [&](SideEffect& effect, RunOnceSettings settings, std::optional<Result<RunOnceReply>>& into) {
    bench.spawn(run_once(bench.flaky, bench.clock, bench.random, claim_of("a"), effect, settings), into);
  };
  start(slow, {}, first);
  start(other, {}, refused);
  start(other, {.wait = true}, waited);
  bench.run();
  EXPECT_TRUE(std::holds_alternative<Ran>(**first));
  EXPECT_EQ(std::get<Busy>(**refused).code, Code::ALREADY_RUNNING);
  EXPECT_EQ(std::get<Replay>(**waited).run.as<Completed>()->result, "42");
  EXPECT_EQ(other.runs, 0u);
}

}  // namespace
}  // namespace latchkey
