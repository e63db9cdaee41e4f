// Leases and fences: the owner of a run, the end of its lease, and jumps of the clock.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Leases : public StoreTest {};
LK_CONFORMANCE(Leases);

TEST_P(Leases, FencesRiseOverEverything) {
  std::uint64_t last = 0;
  const auto rises = [&](const Won& won) {
    EXPECT_GT(static_cast<std::uint64_t>(won.fence), last);
    EXPECT_LT(static_cast<std::uint64_t>(won.fence), std::uint64_t{1} << 53);
    last = static_cast<std::uint64_t>(won.fence);
  };
  const Won first = win();
  rises(first);
  rises(win(a_claim("other")));
  end(first, retryable());
  advance(1s);
  const Won second = win();
  rises(second);
  end(second, permanent());
  const Won third = win();  // a new generation
  rises(third);
  end(third);
  advance(24h * 40);
  for (const auto& entry : store().list_dead_letters({}).value().entries)
    store().acknowledge({}, entry.id, "me").value();
  verbs().purge();
  rises(win());  // after the purge
  add(a_job("j"));
  rises(take_one());
}

TEST_P(Leases, FencesRiseOverReopening) {
  const Won first = win();
  opened().reopen();
  if (!opened().is_durable()) {
    EXPECT_TRUE(is_gone(first.run.id()));
    return;
  }
  advance(kDefaultLease);
  EXPECT_GT(win().fence, first.fence);
  EXPECT_GT(win(a_claim("new")).fence, first.fence);
}

TEST_P(Leases, AHeartbeatExtendsAndNeverShortens) {
  const Won won = win();
  advance(30s);
  const auto extended = std::get<Extended>(verbs().extend({{}, won.run.id(), won.fence, {}}));
  EXPECT_EQ(extended.lease_until, now() + kDefaultLease);
  EXPECT_FALSE(extended.cancel_requested);
  EXPECT_EQ(std::get<Extended>(verbs().extend({{}, won.run.id(), won.fence, 1s})).lease_until, extended.lease_until);
  EXPECT_EQ(find(won.run.id()).as<Running>()->lease_until, extended.lease_until);
  advance(59s);
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(a_claim())));
  advance(1s);
  EXPECT_EQ(win().run.id(), won.run.id());
}

TEST_P(Leases, HeartbeatWithoutALeaseUsesTheOwnersLease) {
  end(win(), retryable());
  advance(1s);
  ClaimRequest longer = a_claim();
  longer.lease = 5min;
  const Won second = win(longer);
  const auto extend = [&](const Won& won) {
    return std::get<Extended>(verbs().extend({{}, won.run.id(), won.fence, {}})).lease_until - now();
  };
  advance(1s);
  EXPECT_EQ(extend(second), 5min) << "not the first claim's";
  add(a_job("j"));
  const auto taken = verbs().take({.tenant = {}, .functions = {"f"}, .session = {}, .lease = 7min});
  advance(1s);
  EXPECT_EQ(extend(taken.at(0)), 7min);
  opened().reopen();
  if (!opened().is_durable()) return;
  advance(1s);
  EXPECT_EQ(extend(second), 5min);
  EXPECT_EQ(extend(taken.at(0)), 7min);
}

TEST_P(Leases, HeartbeatOfAnOldOwnerIsRefused) {
  const Won first = win();
  advance(kDefaultLease);
  const Won second = win();
  EXPECT_EQ(code_of(verbs().extend({{}, first.run.id(), first.fence, {}})), Code::LEASE_LOST);
  std::get<Extended>(verbs().extend({{}, second.run.id(), second.fence, {}}));
  end(second);
  EXPECT_EQ(code_of(verbs().extend({{}, second.run.id(), second.fence, {}})), Code::LEASE_LOST);
}

TEST_P(Leases, HeartbeatsInABatchAreIndependent) {
  const Won a = win(a_claim("a")), b = win(a_claim("b"));
  const auto replies = await<std::vector<ExtendReply>>([&](auto done) {
    store().extend({{{}, a.run.id(), a.fence, {}}, {{}, b.run.id(), Fence{0}, {}}, {{}, id_of(9), a.fence, {}}},
                   std::move(done));
  });
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Extended>(replies[0]));
  EXPECT_EQ(code_of(replies[1]), Code::LEASE_LOST);
  EXPECT_EQ(code_of(replies[2]), Code::NOT_FOUND);
}

TEST_P(Leases, OwnerLearnsOfACancelAndMayComplete) {
  const Won won = win();
  EXPECT_EQ(move(won.run.id(), CancelByHand{}).run.status(), Status::running);
  EXPECT_TRUE(std::get<Extended>(verbs().extend({{}, won.run.id(), won.fence, {}})).cancel_requested);
  EXPECT_EQ(end(won).run.status(), Status::completed);
}

TEST_P(Leases, AttemptsAreCountedWhenTheyStart) {
  ClaimRequest request = a_claim();
  request.retry.retries = 1;
  EXPECT_EQ(win(request).run.attempt, 1u);
  advance(kDefaultLease);
  const Won second = win(request);
  EXPECT_EQ(second.run.attempt, 2u);
  advance(kDefaultLease);
  EXPECT_EQ(verbs().sweep().changed, 1u);
  EXPECT_EQ(find(second.run.id()).as<Failed>()->code, "OUTCOME_UNKNOWN");
}

class ClockJumps : public StoreTest {};
LK_CONFORMANCE(ClockJumps);

TEST_P(ClockJumps, StepBackDoesNotExtendOrReviveLeases) {
  const Won won = win();
  const Instant before = now();
  opened().clock().jump(-1h);
  EXPECT_GE(now(), before);
  advance(59s);
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(a_claim())));
  advance(1s);
  EXPECT_EQ(win().run.attempt, won.run.attempt + 1);
}

TEST_P(ClockJumps, AStepForwardEndsLeases) {
  win();
  opened().clock().jump(1h);
  EXPECT_EQ(win().run.attempt, 2u);
  opened().clock().jump(-1h);
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(a_claim())));
}

TEST_P(ClockJumps, AStepBackNeitherHastensNorDelaysJobs) {
  EnqueueRequest later = a_job("later");
  later.delay = 30min;
  add(later);
  add(a_job("before"));
  opened().clock().jump(-1h);
  add(a_job("after"));
  EXPECT_EQ(take_up_to(5).size(), 2u);
  advance(30min - 1ms);
  EXPECT_TRUE(take_up_to(5).empty());
  advance(1ms);
  const auto taken = take_up_to(5);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].run.head->key, "later");
}

TEST_P(ClockJumps, NeverRunsBackwardsAfterReopening) {
  win();
  const Instant before = now();
  opened().reopen();
  opened().clock().jump(-1h);
  EXPECT_GE(now(), before);
}

TEST_P(ClockJumps, NeverRunsBackwardsOverReopening) {
  win();
  const Instant before = now();
  opened().clock().jump(-1h);
  opened().reopen();
  if (opened().is_durable()) {
    EXPECT_GE(now(), before);
  } else {
    EXPECT_EQ(now(), before - 1h) << "a store that is not durable also loses its clock's mark";
  }
}

}  // namespace
}  // namespace latchkey
