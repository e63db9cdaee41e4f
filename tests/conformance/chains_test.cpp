// Runs that wait for others.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Chains : public StoreTest {
 protected:
  Run chain(std::string key, std::vector<RunId> after, OnFailed on_failed = OnFailed::wait) {
    EnqueueRequest request = a_job(std::move(key));
    request.after = std::move(after);
    request.on_failed = on_failed;
    request.retry = kNoRetries;
    return add(request);
  }
  // Takes the only ready job, which must be this one.
  Taken take_this(RunId id) {
    const auto taken = take_up_to(10);
    if (taken.size() != 1 || taken[0].run.id() != id) throw std::runtime_error("another job, or not one, was ready");
    return taken[0];
  }
  Status status(const Run& run) { return find(run.id()).status(); }
  std::size_t dead_members() {
    std::size_t members = 0;
    for (const auto& entry : store().list_dead_letters({}).value().entries)
      members += store().list_members(entry.id, 100).value().size();
    return members;
  }
};
LK_CONFORMANCE(Chains);

TEST_P(Chains, OneAfterAnother) {
  const Run a = chain("a", {}), b = chain("b", {a.id()}), c = chain("c", {b.id()});
  EXPECT_EQ(b.waiting_for, 1u);
  end(take_this(a.id()));
  end(take_this(b.id()));
  EXPECT_EQ(end(take_this(c.id())).run.status(), Status::completed);
  EXPECT_EQ(status(a), Status::completed);
}

// covers: A11
TEST_P(Chains, FanOutAndFanIn) {
  const Run a = chain("a", {});
  const Run b = chain("b", {a.id()}), c = chain("c", {a.id()});
  const Run d = chain("d", {b.id(), c.id(), b.id()});  // named twice, waited for once
  EXPECT_EQ(d.waiting_for, 2u);
  end(take_this(a.id()));
  const auto middle = take_up_to(10);
  ASSERT_EQ(middle.size(), 2u);
  end(middle[0]);
  EXPECT_TRUE(take_up_to(10).empty());
  end(middle[1]);
  end(take_this(d.id()));
}

TEST_P(Chains, EndedPredecessorsAreNotWaitedFor) {
  const Run a = chain("a", {});
  end(take_this(a.id()));
  const Run b = chain("b", {a.id()});
  EXPECT_EQ(b.waiting_for, 0u);
  take_this(b.id());
}

TEST_P(Chains, EveryModeWhenAPredecessorFails) {
  for (const bool beforehand : {false, true}) {
    const std::string at = beforehand ? "2" : "1";
    const Run a = chain("a" + at, {});
    if (beforehand) end(take_this(a.id()), permanent());
    const Run waits = chain("wait" + at, {a.id()}, OnFailed::wait),
              skips = chain("skip" + at, {a.id()}, OnFailed::skip), runs = chain("run" + at, {a.id()}, OnFailed::run),
              fails = chain("fail" + at, {a.id()}, OnFailed::fail);
    if (!beforehand) end(take_this(a.id()), permanent());
    EXPECT_EQ(status(waits), Status::queued);
    EXPECT_EQ(find(waits.id()).waiting_for, 1u);
    EXPECT_EQ(find(skips.id()).as<Cancelled>()->code, "PREDECESSOR_FAILED");
    EXPECT_EQ(find(fails.id()).as<Failed>()->code, "PREDECESSOR_FAILED");
    end(take_this(runs.id()));
    move(waits.id(), CancelByHand{});
  }
}

TEST_P(Chains, CancelCountsAsFailureDoubtDoesNot) {
  const Run a = chain("a", {});
  const Run b = chain("b", {a.id()}, OnFailed::skip);
  move(a.id(), CancelByHand{});
  EXPECT_EQ(status(b), Status::cancelled);

  EnqueueRequest doubted = a_job("doubted");
  doubted.on_doubt = OnDoubt::hold;
  const Run c = add(doubted);
  const Run d = chain("d", {c.id()}, OnFailed::fail);
  end(take_this(c.id()), outcome_unknown());
  EXPECT_EQ(status(d), Status::queued);
  move(c.id(), ResolveCompleted{""});
  take_this(d.id());
}

TEST_P(Chains, RetriedPredecessorReleasesItsDependents) {
  const Run a = chain("a", {}), b = chain("b", {a.id()});
  end(take_this(a.id()), permanent());
  move(a.id(), RetryByHand{});
  end(take_this(a.id()));
  end(take_this(b.id()));
}

TEST_P(Chains, FailuresRunThroughAChain) {
  const Run a = chain("a", {});
  std::vector<Run> rest;
  RunId last = a.id();
  for (int i = 0; i < 30; ++i) {
    rest.push_back(chain("k" + std::to_string(i), {last}, OnFailed::fail));
    last = rest.back().id();
  }
  end(take_this(a.id()), permanent());
  for (const Run& run : rest) EXPECT_EQ(status(run), Status::failed);
  EXPECT_EQ(dead_members(), 31u);
}

// D waits for A and for B, and B fails with A, so D loses two predecessors in one transaction.
TEST_P(Chains, DiamondThatFailsAtOnceIsCountedOnce) {
  const Run a = chain("a", {});
  const Run b = chain("b", {a.id()}, OnFailed::skip);
  const Run fails = chain("fails", {a.id(), b.id()}, OnFailed::fail);
  const Run runs = chain("runs", {a.id(), b.id()}, OnFailed::run);
  end(take_this(a.id()), permanent());
  EXPECT_EQ(status(fails), Status::failed);
  EXPECT_EQ(dead_members(), 2u);  // a and `fails`, once each
  EXPECT_EQ(find(runs.id()).waiting_for, 0u);
  take_this(runs.id());
}

TEST_P(Chains, RunThatFailedWithPredecessorCanBeRetried) {
  const Run a = chain("a", {}), b = chain("b", {});
  const Run c = chain("c", {a.id(), b.id()}, OnFailed::fail);
  auto both = take_up_to(2);
  end(both.at(0), permanent());
  EXPECT_EQ(status(c), Status::failed);
  move(c.id(), RetryByHand{});
  end(take_this(c.id()));
  EXPECT_TRUE(end(both.at(1)).changed);
  EXPECT_EQ(status(c), Status::completed);
}

TEST_P(Chains, RepeatedEnqueueWaitsForItsPredecessors) {
  const Run a = chain("a", {}), b = chain("b", {a.id()}, OnFailed::fail);
  end(take_this(a.id()), permanent());
  EXPECT_EQ(status(b), Status::failed);
  chain("a", {});
  const Run again = chain("b", {a.id()}, OnFailed::fail);
  EXPECT_EQ(again.id(), b.id());
  EXPECT_EQ(again.generation, 2u);
  EXPECT_EQ(again.waiting_for, 1u);
  end(take_this(a.id()));
  end(take_this(b.id()));
}

TEST_P(Chains, EarlierGenerationsPredecessorsAreIgnored) {
  for (const bool by_hand : {false, true}) {
    const std::string at = by_hand ? "2" : "1";
    const Run a = chain("a" + at, {}), b = chain("b" + at, {}), c = chain("c" + at, {});
    const Run d = chain("d" + at, {a.id(), b.id()}, OnFailed::fail);
    const Run skipped = chain("s" + at, {b.id()}, OnFailed::fail);
    auto first = take_up_to(3);
    ASSERT_EQ(first.size(), 3u);
    end(first[0], permanent());  // a
    EXPECT_EQ(status(d), Status::failed);
    if (by_hand) {
      move(d.id(), RetryByHand{});
      EXPECT_EQ(take_this(d.id()).run.generation, 2u);
    } else {
      EXPECT_EQ(chain("d" + at, {c.id()}, OnFailed::fail).waiting_for, 1u);
    }
    end(first[1], by_hand ? Ending{permanent()} : Ending{Complete{"", {}}});  // b
    EXPECT_EQ(status(skipped), by_hand ? Status::failed : Status::queued) << "the dependent gets the end of b";
    if (!by_hand) end(take_this(skipped.id()));
    EXPECT_EQ(status(d), by_hand ? Status::running : Status::queued);
    end(first[2]);  // c
    if (!by_hand) end(take_this(d.id()));
  }
}

TEST_P(Chains, CancelledRunsWaitForNothing) {
  const Run a = chain("a", {}), b = chain("b", {a.id()});
  move(b.id(), CancelByHand{});
  end(take_this(a.id()));
  advance(24h * 8);
  verbs().purge();
  EXPECT_TRUE(is_gone(a.id()));
}

TEST_P(Chains, AnUnknownPredecessorIsRefusedPerRequest) {
  EnqueueRequest bad = a_job("bad");
  bad.after = {id_of(999)};
  const auto replies = verbs().enqueue_all({a_job("a"), bad, a_job("c")});
  EXPECT_TRUE(std::holds_alternative<Enqueued>(replies.at(0)));
  EXPECT_EQ(code_of(replies.at(1)), Code::PREDECESSOR_UNKNOWN);
  EXPECT_TRUE(std::holds_alternative<Enqueued>(replies.at(2)));
  bad.after.clear();
  EXPECT_FALSE(std::get<Enqueued>(verbs().enqueue(bad)).duplicate) << "the refused request has changed nothing";
}

TEST_P(Chains, APredecessorInTheSameBatchMayBeNamed) {
  const Run a = chain("a", {});
  EnqueueRequest second = a_job("b"), third = a_job("c");
  second.after = third.after = {a.id()};
  verbs().enqueue_all({second, third});
  end(take_this(a.id()));
  EXPECT_EQ(take_up_to(10).size(), 2u);
}

TEST_P(Chains, WaitingSurvivesReopening) {
  const Run a = chain("a", {}), b = chain("b", {a.id()});
  opened().reopen();
  if (!opened().is_durable()) {
    EXPECT_TRUE(is_gone(b.id()));
    return;
  }
  end(take_this(a.id()));
  end(take_this(b.id()));
}

}  // namespace
}  // namespace latchkey
