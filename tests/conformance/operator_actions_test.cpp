// Operator actions: cancel, retry, resolve.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class OperatorActions : public StoreTest {
 protected:
  MoveReply try_move(RunId id, Move wish) { return verbs().move({{}, id, std::move(wish)}); }
  Won in_doubt(std::string key = "k") {
    ClaimRequest request = a_claim(std::move(key));
    request.on_doubt = OnDoubt::hold;
    const Won won = win(request);
    end(won, outcome_unknown());
    return won;
  }
};
LK_CONFORMANCE(OperatorActions);

TEST_P(OperatorActions, CancelFreesTheKeyAtOnce) {
  const Run job = add(a_job());
  EXPECT_EQ(move(job.id(), CancelByHand{}).run.status(), Status::cancelled);
  EXPECT_FALSE(move(job.id(), CancelByHand{}).changed);
  EXPECT_TRUE(take_up_to(10).empty());
  EXPECT_NE(add(a_job()).id(), job.id());

  const Won doubted = in_doubt("d");
  EXPECT_EQ(move(doubted.run.id(), CancelByHand{}).run.as<Cancelled>()->effect, Effect::unknown);
  const Won failed = win(a_claim("e"));
  end(failed, permanent());
  EXPECT_EQ(move(failed.run.id(), CancelByHand{}).run.as<Cancelled>()->effect, Effect::none);
  EXPECT_NE(win(a_claim("e")).run.id(), failed.run.id());
}

TEST_P(OperatorActions, CompletedRunStaysCompleted) {
  const Won won = win();
  end(won);
  for (const Move& wish : {Move{CancelByHand{}}, Move{RetryByHand{}}, Move{ResolveFailed{}}, Move{ResolveRerun{}}})
    EXPECT_EQ(code_of(try_move(won.run.id(), wish)), Code::MOVE_REFUSED);
  EXPECT_FALSE(move(won.run.id(), ResolveCompleted{"other"}).changed);
  EXPECT_EQ(find(won.run.id()).as<Completed>()->result, "result");
}

TEST_P(OperatorActions, UnknownRunsAreNotFound) {
  EXPECT_EQ(code_of(try_move(id_of(9), CancelByHand{})), Code::NOT_FOUND);
}

TEST_P(OperatorActions, RetryIsANewGenerationOnce) {
  add(a_job());
  const Taken taken = take_one();
  end(taken, permanent());
  const Moved retried = move(taken.run.id(), RetryByHand{});
  EXPECT_EQ(retried.run.generation, 2u);
  EXPECT_FALSE(move(taken.run.id(), RetryByHand{}).changed);
  const Taken again = take_one();
  EXPECT_EQ(again.run.id(), taken.run.id());
  EXPECT_EQ(again.run.attempt, 1u);
  EXPECT_EQ(again.run.attempts_total, 2u);
  EXPECT_EQ(again.run.effect_key, taken.run.id());
  EXPECT_EQ(code_of(verbs().settle({{}, taken.run.id(), taken.fence, Complete{}})), Code::LEASE_LOST);
}

TEST_P(OperatorActions, RetryMayRequestANewEffectKey) {
  const Won won = win();
  end(won, permanent());
  const Run retried = move(won.run.id(), RetryByHand{.fresh_effect_key = true}).run;
  EXPECT_NE(retried.effect_key, won.run.id());
  EXPECT_EQ(find(won.run.id()).effect_key, retried.effect_key);
  EXPECT_EQ(win().run.effect_key, retried.effect_key);
}

TEST_P(OperatorActions, NewEffectKeyNeedsAnUnstartedRun) {
  const Won won = win();
  end(won, permanent());
  move(won.run.id(), RetryByHand{});
  advance(1min);
  const Moved fresh = move(won.run.id(), RetryByHand{.fresh_effect_key = true});
  EXPECT_TRUE(fresh.changed);
  EXPECT_NE(fresh.run.effect_key, won.run.id());
  advance(1min);
  EXPECT_FALSE(move(won.run.id(), RetryByHand{.fresh_effect_key = true}).changed) << "a repeat after a lost reply";
  EXPECT_EQ(win().run.effect_key, fresh.run.effect_key);
  EXPECT_EQ(code_of(try_move(won.run.id(), RetryByHand{.fresh_effect_key = true})), Code::MOVE_REFUSED);
}

TEST_P(OperatorActions, OnlyOperatorsReopenLatchkeysRuns) {
  EnqueueRequest tick = a_job("tick");
  tick.made_by = MadeBy::latchkey;
  const Run run = add(tick);
  move(run.id(), CancelByHand{});
  EXPECT_EQ(on_wire(verbs().claim(a_claim("tick"))).status, 409);
  EXPECT_EQ(move(run.id(), RetryByHand{}).run.generation, 2u);
  end(take_one());
  const Run callers = add(a_job("own"));
  move(callers.id(), CancelByHand{});
  EXPECT_EQ(code_of(try_move(callers.id(), RetryByHand{})), Code::MOVE_REFUSED) << "its key is free for a new run";
}

// There is no sweep in these tests: operator actions depend on deadlines, not on the sweep.
TEST_P(OperatorActions, DeadlinesAreAppliedFirst) {
  ClaimRequest held = a_claim("held");
  held.on_doubt = OnDoubt::hold;
  const Won completed = win(held);
  held.key = "failed", held.key_hash = hash_key("default", "f", "failed");
  const Won failed = win(held);
  ClaimRequest used_up = a_claim("used up");
  used_up.retry = kNoRetries;
  const Won lost = win(used_up);
  const Won cancelled = win(a_claim("cancelled"));
  add(a_job("job"));
  const Taken taken = take_one();
  for (const Won& won : {completed, failed})
    EXPECT_EQ(code_of(try_move(won.run.id(), ResolveRerun{})), Code::MOVE_REFUSED);
  advance(kDefaultLease);
  EXPECT_EQ(move(completed.run.id(), ResolveCompleted{"r"}).run.status(), Status::completed);
  EXPECT_EQ(code_of(try_move(failed.run.id(), RetryByHand{})), Code::MOVE_REFUSED);
  EXPECT_EQ(find(failed.run.id()).status(), Status::in_doubt)
      << "the deadline was written although the action was refused";
  EXPECT_EQ(move(failed.run.id(), ResolveFailed{"no"}).run.status(), Status::failed);
  EXPECT_EQ(move(lost.run.id(), RetryByHand{}).run.generation, 2u);
  EXPECT_EQ(store().list_dead_letters({}).value().entries.at(0).count, 2u) << "one member for each failure";
  move(cancelled.run.id(), CancelByHand{});
  EXPECT_EQ(find(cancelled.run.id()).as<Cancelled>()->effect, Effect::unknown) << "its owner cannot report the effect";
  move(taken.run.id(), CancelByHand{});
  EXPECT_EQ(find(taken.run.id()).as<Cancelled>()->effect, Effect::unknown) << "its last attempt was lost";
}

TEST_P(OperatorActions, ResolveCompletedReplaysAndReleases) {
  const Won won = in_doubt();
  EnqueueRequest next = a_job("next");
  next.after = {won.run.id()};
  add(next);
  EXPECT_EQ(move(won.run.id(), ResolveCompleted{"by hand"}).run.status(), Status::completed);
  EXPECT_FALSE(move(won.run.id(), ResolveCompleted{"by hand"}).changed);
  EXPECT_EQ(std::get<Replay>(verbs().claim(a_claim())).run.as<Completed>()->result, "by hand");
  EXPECT_EQ(take_up_to(10).size(), 1u);
}

TEST_P(OperatorActions, ResolveFailedLeavesADeadLetter) {
  const Won won = in_doubt();
  EXPECT_EQ(move(won.run.id(), ResolveFailed{"checked: not booked"}).run.status(), Status::failed);
  const auto dead_letters = store().list_dead_letters({}).value().entries;
  ASSERT_EQ(dead_letters.size(), 1u);
  EXPECT_EQ(dead_letters[0].reason, "checked: not booked");
  EXPECT_EQ(win().run.generation, 2u) << "the operator has resolved that the effect did not happen";
}

TEST_P(OperatorActions, ResolveRerunIsTheSameGeneration) {
  ClaimRequest request = a_claim();
  request.on_doubt = OnDoubt::hold;
  request.retry = kNoRetries;
  const Won won = win(request);
  end(won, outcome_unknown());
  EXPECT_EQ(move(won.run.id(), ResolveRerun{}).run.status(), Status::queued);
  EXPECT_FALSE(move(won.run.id(), ResolveRerun{}).changed);
  const Won again = win(request);
  EXPECT_EQ(again.run.id(), won.run.id());
  EXPECT_EQ(again.run.generation, 1u);
  EXPECT_EQ(again.run.attempt, 2u);
}

class Owners : public OperatorActions {
 protected:
  // The failed first run of a lock, and a newer run under the same key.
  ClaimRequest lock = [] {
    ClaimRequest request = a_claim();
    request.guard = Guard::while_running;
    return request;
  }();
  Won old = win(lock);
  Settled ended = end(old, permanent());
  Won newer = win(lock);
};
LK_CONFORMANCE(Owners);

TEST_P(Owners, RetryIsRefusedWhileANewerRunOwnsTheKey) {
  EXPECT_EQ(code_of(try_move(old.run.id(), RetryByHand{})), Code::MOVE_REFUSED);
  EXPECT_EQ(find(old.run.id()).status(), Status::failed);
  EXPECT_EQ(find(newer.run.id()).status(), Status::running);
}

TEST_P(Owners, RetryTakesTheKeyOfAnEndedNewerRun) {
  end(newer);
  move(old.run.id(), RetryByHand{});
  EXPECT_EQ(win(lock).run.id(), old.run.id());
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(lock)));
}

TEST_P(Owners, RetryTakesTheKeyOfAPurgedNewerRun) {
  end(newer);
  advance(24h * 8);
  verbs().purge();
  ASSERT_TRUE(is_gone(newer.run.id()));
  move(old.run.id(), RetryByHand{});
  EXPECT_EQ(win(lock).run.id(), old.run.id()) << "two open runs under one key";
}

}  // namespace
}  // namespace latchkey
