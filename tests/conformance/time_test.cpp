// Sweep and purge: the effects of time on runs.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Sweeping : public StoreTest {
 protected:
  Won win_on(OnDoubt on_doubt, RetryPolicy retry = {}) {
    ClaimRequest request = a_claim();
    request.on_doubt = on_doubt;
    request.retry = retry;
    return win(request);
  }
  // Sweeps just before the deadline, which must change nothing, then at the deadline.
  Run swept_at(RunId id, Duration span) {
    advance(span - 1ms);
    EXPECT_EQ(verbs().sweep().changed, 0u);
    EXPECT_EQ(store().next_deadline(), now() + 1ms);
    advance(1ms);
    EXPECT_EQ(verbs().sweep().changed, 1u);
    EXPECT_EQ(verbs().sweep().changed, 0u);
    return find(id);
  }
};
LK_CONFORMANCE(Sweeping);

TEST_P(Sweeping, NothingIsDueWhenNothingIsOpen) {
  EXPECT_FALSE(store().next_deadline());
  EXPECT_EQ(verbs().sweep().changed, 0u);
}
TEST_P(Sweeping, AJobGoesBackToTheQueue) {
  const Run job = add(a_job());
  take_one();
  EXPECT_EQ(swept_at(job.id(), kDefaultLease).status(), Status::queued);
  EXPECT_EQ(take_one().run.attempt, 2u);
}
TEST_P(Sweeping, AJobWithUsedUpTriesFails) {
  EnqueueRequest request = a_job();
  request.retry = kNoRetries;
  const Run job = add(request);
  take_one();
  EXPECT_EQ(*swept_at(job.id(), kDefaultLease).as<Failed>(), (Failed{now(), "OUTCOME_UNKNOWN", Effect::unknown}));
  EXPECT_EQ(store().list_dead_letters({}).value().entries.size(), 1u);
}
TEST_P(Sweeping, HoldBecomesDoubt) {
  EXPECT_EQ(*swept_at(win_on(OnDoubt::hold).run.id(), kDefaultLease).as<InDoubt>(), InDoubt{now()});
  EXPECT_FALSE(store().next_deadline()) << "doubt never expires";
}
TEST_P(Sweeping, AClaimWaitsADayForItsCaller) {
  EXPECT_EQ(*swept_at(win_on(OnDoubt::rerun).run.id(), kDefaultLease + 24h).as<Failed>(),
            (Failed{now(), "OUTCOME_UNKNOWN", Effect::unknown}));
}
TEST_P(Sweeping, FailedAttemptWithoutAnotherClaimFails) {
  const Won won = win();
  end(won, retryable());
  EXPECT_EQ(*swept_at(won.run.id(), 1s + 24h).as<Failed>(), (Failed{now(), "MAX_RETRIES_EXCEEDED", Effect::none}));
}
TEST_P(Sweeping, UnclaimedReleasedRunFailsWithReason) {
  const Won won = win();
  end(won, Release{});
  EXPECT_EQ(swept_at(won.run.id(), 24h).last_error,
            "the last attempt was released, and the run was not claimed again within 24 h");
  EXPECT_EQ(store().list_dead_letters({}).value().entries.at(0).reason, find(won.run.id()).last_error);
  move(won.run.id(), RetryByHand{});
  EXPECT_EQ(swept_at(won.run.id(), 24h).last_error, "the run was opened again, and was not claimed within 24 h");
}
TEST_P(Sweeping, UnclaimedRunFailsWithUnknownEffect) {
  const Won won = win();
  end(won, outcome_unknown());
  EXPECT_EQ(*swept_at(won.run.id(), 1s + 24h).as<Failed>(), (Failed{now(), "OUTCOME_UNKNOWN", Effect::unknown}));
}
TEST_P(Sweeping, ACancelRequestEndsWithTheLease) {
  const Won won = win();
  move(won.run.id(), CancelByHand{});
  EXPECT_EQ(*swept_at(won.run.id(), kDefaultLease).as<Cancelled>(), (Cancelled{now(), "CANCELLED", Effect::unknown}));
}
TEST_P(Sweeping, EndReleasesDependents) {
  EnqueueRequest first = a_job("a"), second = a_job("b");
  first.retry = kNoRetries;
  second.after = {add(first).id()};
  second.on_failed = OnFailed::run;
  take_one();
  add(second);
  advance(kDefaultLease);
  verbs().sweep();
  EXPECT_EQ(take_one().run.head->key, "b");
}
TEST_P(Sweeping, TheLimitHoldsAndSaysThereIsMore) {
  for (int i = 0; i < 5; ++i) add(a_job("k" + std::to_string(i)));
  take_up_to(5);
  advance(kDefaultLease);
  const Swept first = verbs().sweep(3);
  EXPECT_EQ(first.changed, 3u);
  EXPECT_TRUE(first.more);
  const Swept rest = verbs().sweep(3);
  EXPECT_EQ(rest.changed, 2u);
  EXPECT_FALSE(rest.more);
}
TEST_P(Sweeping, DeadlinesSurviveReopening) {
  add(a_job());
  const Taken taken = take_one();
  opened().reopen();
  if (!opened().is_durable()) {
    EXPECT_FALSE(store().next_deadline());
    return;
  }
  EXPECT_EQ(store().next_deadline(), taken.lease_until);
  EXPECT_EQ(swept_at(taken.run.id(), kDefaultLease).status(), Status::queued);
}

class Purging : public StoreTest {
 protected:
  // Purges like a server, until there is no more. Fails if the purge does not end.
  std::uint32_t purge_all(Retention retention = {}, std::uint32_t limit = 1000) {
    std::uint32_t gone = 0;
    for (int i = 0; i < 1000; ++i) {
      const Swept swept = verbs().purge(retention, limit);
      gone += swept.changed;
      if (!swept.more) return gone;
    }
    throw std::runtime_error("purge never comes to an end");
  }
  void acknowledge_all() {
    for (const auto& entry : store().list_dead_letters({}).value().entries)
      store().acknowledge({}, entry.id, "me").value();
  }
};
LK_CONFORMANCE(Purging);

TEST_P(Purging, NeedsTheRetentionToBeOver) {
  const Won won = win();
  end(won);
  advance(24h * 7 - 1ms);
  EXPECT_EQ(purge_all(), 0u);
  advance(1ms);
  EXPECT_EQ(purge_all(), 1u);
  EXPECT_TRUE(is_gone(won.run.id()));
  EXPECT_FALSE(store().find_latest({"default", "f", "k", hash_key("default", "f", "k")}).value());
  EXPECT_EQ(code_of(verbs().settle({{}, won.run.id(), won.fence, Complete{}})), Code::NOT_FOUND);
}
TEST_P(Purging, NeedsTheWindowToBeOver) {
  ClaimRequest request = a_claim();
  request.window = 24h * 10;
  end(win(request));
  advance(24h * 10 - 1ms);
  EXPECT_EQ(purge_all(), 0u);
  EXPECT_TRUE(std::holds_alternative<Replay>(verbs().claim(request)));
  advance(1ms);
  EXPECT_EQ(purge_all(), 1u);
}
TEST_P(Purging, ExpiredKeyIsFreeBeforeThePurge) {
  for (const bool purged : {false, true}) {
    ClaimRequest request = a_claim(purged ? "p" : "q");
    const Won first = win(request);
    end(first);
    advance(24h);
    if (purged) purge_all({.done = 0ms});
    EXPECT_EQ(is_gone(first.run.id()), purged);
    const Won second = win(request);
    EXPECT_NE(second.run.id(), first.run.id());
    EXPECT_GT(second.fence, first.fence);
    EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(request)));
    end(second);
  }
}
TEST_P(Purging, OldRunOfAKeyIsPurgedWithoutTheNewOne) {
  const Won first = win();
  end(first);
  advance(24h * 7);
  const Won second = win();
  EXPECT_EQ(purge_all(), 1u);
  EXPECT_TRUE(is_gone(first.run.id()));
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(a_claim())));
  EXPECT_EQ(find(second.run.id()).status(), Status::running);
}
TEST_P(Purging, UnacknowledgedDeadLetterIsNotPurged) {
  const Won won = win();
  end(won, permanent());
  advance(24h * 30);
  EXPECT_EQ(purge_all(), 0u);
  acknowledge_all();
  EXPECT_EQ(purge_all(), 1u);
  EXPECT_TRUE(store().list_dead_letters({.with_acknowledged = true}).value().entries.empty())
      << "the entry is purged with its run";
}
TEST_P(Purging, FailedRunsHaveALongerRetention) {
  end(win(), permanent());
  acknowledge_all();
  advance(24h * 30 - 1ms);
  EXPECT_EQ(purge_all(), 0u);
  advance(1ms);
  EXPECT_EQ(purge_all(), 1u);
}
TEST_P(Purging, OpenRunsAreNotPurged) {
  ClaimRequest held = a_claim("held");
  held.on_doubt = OnDoubt::hold;
  end(win(held), outcome_unknown());
  add(a_job("queued"));
  win(a_claim("running"));
  advance(24h * 999);
  EXPECT_EQ(purge_all(), 0u);
}
TEST_P(Purging, PredecessorsOfOpenRunsAreNotPurged) {
  const Run a = add(a_job("a"));
  EnqueueRequest waiting = a_job("b");
  waiting.after = {a.id()};
  const Run b = add(waiting);
  end(take_one(), permanent());
  acknowledge_all();
  advance(24h * 31);
  EXPECT_EQ(purge_all(), 0u);
  move(b.id(), CancelByHand{});
  EXPECT_EQ(purge_all(), 1u);
  EXPECT_TRUE(is_gone(a.id()));
}
TEST_P(Purging, EndsForEveryLimit) {
  for (int i = 0; i < 6; ++i) end(win(a_claim("k" + std::to_string(i))));
  for (const std::uint32_t limit : {1u, 2u, 3u, 5u, 6u, 7u}) EXPECT_EQ(purge_all({}, limit), 0u) << limit;
  advance(24h * 7);
  EXPECT_EQ(purge_all({}, 2), 6u);
}
TEST_P(Purging, RetainedRunsDoNotHideLaterOnes) {
  end(win(a_claim("old")), permanent());
  for (int i = 0; i < 4; ++i) end(win(a_claim("k" + std::to_string(i))));
  advance(24h * 30);
  EXPECT_EQ(purge_all({}, 1), 4u);
}
TEST_P(Purging, PurgeContinuesAfterReopeningForEachSlice) {
  for (int i = 0; i < 101; ++i) end(win(a_claim("unacknowledged" + std::to_string(i))), permanent());
  for (int i = 0; i < 4; ++i) end(win(a_claim("k" + std::to_string(i))));
  advance(24h * 30);
  std::uint32_t gone = 0;
  for (int i = 0; i < 3 && opened().is_durable(); ++i) {
    gone += verbs().purge({}, 100).changed;
    opened().reopen();
  }
  EXPECT_EQ(gone, opened().is_durable() ? 4u : 0u);
}

}  // namespace
}  // namespace latchkey
