// Enqueue and take: due time, order, limits, batches.
#include <set>

#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Jobs : public StoreTest {
 protected:
  Run add_input(std::string input, std::int32_t priority = 0, Duration delay = {}) {
    EnqueueRequest request;
    request.function = "f";
    request.input = std::move(input);
    request.priority = priority;
    request.delay = delay;
    return add(request);
  }
  std::string taken_in_order(std::uint32_t limit = 100) {
    std::string order;
    for (const Taken& taken : take_up_to(limit)) order += taken.run.head->input;
    return order;
  }
};
LK_CONFORMANCE(Jobs);

TEST_P(Jobs, AJobIsTakenOnceWhenItIsDue) {
  const Run run = add_input("a", 0, 10s);
  EXPECT_EQ(run.status(), Status::queued);
  EXPECT_EQ(run.fence, Fence{0});
  advance(10s - 1ms);
  EXPECT_TRUE(take_up_to(10).empty());
  advance(1ms);
  const Taken taken = take_one();
  EXPECT_EQ(taken.run.id(), run.id());
  EXPECT_EQ(taken.lease_until, now() + kDefaultLease);
  EXPECT_EQ(taken.run.as<Running>()->session, id_of(5));
  EXPECT_TRUE(same_run(taken.run, find(run.id())));
  EXPECT_TRUE(take_up_to(10).empty());
}

TEST_P(Jobs, HighestPriorityThenLongestDueThenOldest) {
  add_input("c");
  add_input("d");
  add_input("b", 0, -1s);  // due when it is enqueued, not earlier
  add_input("z", -100);
  add_input("a", 100);
  advance(1s);
  add_input("e");
  EXPECT_EQ(taken_in_order(), "acdbez");
}

TEST_P(Jobs, TheLimitHolds) {
  for (const char* input : {"a", "b", "c"}) add_input(input);
  EXPECT_EQ(taken_in_order(0), "");
  EXPECT_EQ(taken_in_order(2), "ab");
  EXPECT_EQ(taken_in_order(2), "c");
}

TEST_P(Jobs, OnlyTheNamedFunctionsAndTenantsAreTaken) {
  for (const char* tenant : {"acme", "globex"})
    for (const char* function : {"f", "g"}) {
      EnqueueRequest request;
      request.tenant = tenant;
      request.function = function;
      add(request);
    }
  EXPECT_EQ(verbs().take({.tenant = "acme", .functions = {"f"}, .limit = 10}).size(), 1u);
  EXPECT_EQ(verbs().take({.tenant = "other", .functions = {"f", "g"}, .limit = 10}).size(), 0u);
  EXPECT_EQ(verbs().take({.functions = {}, .limit = 10}).size(), 0u);
  EXPECT_EQ(verbs().take({.functions = {"g"}, .limit = 10}).size(), 2u);
  EXPECT_EQ(verbs().take({.functions = {"f", "g", "f"}, .limit = 10}).size(), 1u);
}

TEST_P(Jobs, WorkersLeaseOverridesTheRuns) {
  add_input("a");
  EXPECT_EQ(verbs().take({.functions = {"f"}, .lease = 5s}).at(0).lease_until, now() + 5s);
}

TEST_P(Jobs, AClaimedRunIsNeverTaken) {
  const Won won = win();
  end(won, retryable());
  advance(1h);
  EXPECT_TRUE(take_up_to(10).empty());
}

TEST_P(Jobs, DuplicatesWithinOneBatchAreFound) {
  EnqueueRequest other = a_job("k");
  other.fingerprint = kOther;
  const auto replies = verbs().enqueue_all({a_job("k"), a_job("l"), a_job("k"), other});
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_FALSE(std::get<Enqueued>(replies[0]).duplicate);
  EXPECT_FALSE(std::get<Enqueued>(replies[1]).duplicate);
  EXPECT_TRUE(std::get<Enqueued>(replies[2]).duplicate);
  EXPECT_EQ(std::get<Enqueued>(replies[2]).run.id(), std::get<Enqueued>(replies[0]).run.id());
  EXPECT_EQ(std::get<Mismatch>(replies[3]).existing, std::get<Enqueued>(replies[0]).run.id());
  EXPECT_EQ(take_up_to(10).size(), 2u);
}

TEST_P(Jobs, TheSameCallGetsItsOwnRun) {
  EnqueueRequest request = a_job();
  request.claim = id_of(42);
  const Run run = add(request);
  end(take_one());
  const auto again = std::get<Enqueued>(verbs().enqueue(request));
  EXPECT_FALSE(again.duplicate);
  EXPECT_EQ(again.run.id(), run.id());
}

TEST_P(Jobs, TheSameCallWithoutAKeyMakesOneJob) {
  for (const char* key : {"", "history"}) {  // a key without a guard is only for listing
    EnqueueRequest request;
    request.function = "f";
    request.key = key;
    request.key_hash = hash_key("default", "f", key);
    request.claim = id_of(42 + request.key.size());
    const auto replies = verbs().enqueue_all({request, request});
    const Run run = std::get<Enqueued>(replies[0]).run;
    EXPECT_EQ(std::get<Enqueued>(replies[1]).run.id(), run.id());
    EXPECT_FALSE(std::get<Enqueued>(replies[1]).duplicate);
    EXPECT_EQ(run.head->key, key);
    EXPECT_EQ(run.head->guard, Guard::none);
    opened().reopen();
    if (!opened().is_durable()) return;
    end(take_one());
    EXPECT_EQ(add(request).id(), run.id()) << "in every state of the run";
    EXPECT_TRUE(take_up_to(10).empty());
    EnqueueRequest other = request;
    other.claim = id_of(99 + request.key.size());
    EXPECT_NE(add(other).id(), run.id()) << "another call";
    end(take_one(), permanent());
    EXPECT_EQ(add(other).generation, 1u);
    other.tenant = "acme";
    EXPECT_EQ(add(other).head->tenant, "acme") << "a call of another tenant is another call";
    end(take_one());
  }
}

TEST_P(Jobs, RepeatOfAReopeningCallGetsTheSameReply) {
  add(a_job());
  end(take_one(), permanent());
  EnqueueRequest again = a_job();
  again.claim = id_of(7);
  const auto same = [&] {
    const auto reply = std::get<Enqueued>(verbs().enqueue(again));
    return !reply.duplicate && reply.run.generation == 2;
  };
  EXPECT_TRUE(same());
  EXPECT_TRUE(same()) << "queued";
  opened().reopen();
  if (!opened().is_durable()) return;
  EXPECT_TRUE(same()) << "after a restart";
  const Taken taken = take_one();
  EXPECT_TRUE(same()) << "taken";
  opened().reopen();
  EXPECT_EQ(find(taken.run.id()).as<Running>()->session, id_of(5));
  EXPECT_TRUE(same());
  end(taken, permanent());
  EXPECT_TRUE(same()) << "failed again: the generation is still that call's";
  EnqueueRequest third = a_job();
  third.claim = id_of(8);
  EXPECT_EQ(add(third).generation, 3u);
  EXPECT_TRUE(std::get<Enqueued>(verbs().enqueue(again)).duplicate) << "the generation is another call's now";
}

TEST_P(Jobs, FiveHundredInABatchEachTakenOnce) {
  std::vector<EnqueueRequest> batch;
  for (int i = 0; i < 500; ++i) batch.push_back(a_job("k" + std::to_string(i)));
  std::set<RunId> added;
  for (const EnqueueReply& reply : verbs().enqueue_all(batch)) added.insert(std::get<Enqueued>(reply).run.id());
  EXPECT_EQ(added.size(), 500u);
  const auto taken = take_up_to(500);
  std::set<RunId> owned;
  std::set<Fence> fences;
  std::vector<SettleRequest> endings;
  for (const Taken& one : taken) {
    owned.insert(one.run.id());
    fences.insert(one.fence);
    endings.push_back({{}, one.run.id(), one.fence, Complete{one.run.head->key, {}}});
  }
  EXPECT_EQ(owned, added);
  EXPECT_EQ(fences.size(), 500u);
  for (const SettleReply& reply : verbs().settle_all(endings))
    EXPECT_EQ(std::get<Settled>(reply).run.status(), Status::completed);
  for (const EnqueueReply& reply : verbs().enqueue_all(batch)) EXPECT_TRUE(std::get<Enqueued>(reply).duplicate);
}

TEST_P(Jobs, ThousandsInOneTakeHaveTheirOwnFences) {
  constexpr std::uint32_t kMany = 4'500;
  EnqueueRequest job;
  job.function = "f";
  for (std::uint32_t made = 0; made < kMany; made += 500) verbs().enqueue_all(std::vector(500, job));
  const auto taken = take_up_to(2 * kMany);
  ASSERT_EQ(taken.size(), kMany);
  std::vector<SettleRequest> endings;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (i > 0) EXPECT_GT(taken[i].fence, taken[i - 1].fence);
    endings.push_back({{}, taken[i].run.id(), taken[i].fence, Complete{"r", {}}});
  }
  for (const SettleReply& reply : verbs().settle_all(endings)) EXPECT_TRUE(std::get<Settled>(reply).changed);
}

TEST_P(Jobs, QueuedJobsSurviveReopeningInOrder) {
  for (const char* input : {"b", "c"}) add_input(input);
  add_input("a", 1);
  add_input("later", 0, 1h);
  opened().reopen();
  EXPECT_EQ(taken_in_order(), opened().is_durable() ? "abc" : "");
}

TEST_P(Jobs, NoRetryStartsAfterTheTotal) {
  EnqueueRequest request = a_job();
  request.retry.total = 1min;
  const Run run = add(request);
  end(take_one(), retryable());
  advance(1min + 1ms);  // without a worker
  EXPECT_TRUE(take_up_to(10).empty());
  EXPECT_EQ(find(run.id()).as<Failed>()->code, "MAX_RETRIES_EXCEEDED");
  EXPECT_EQ(store().list_dead_letters({}).value().entries.size(), 1u);
}

TEST_P(Jobs, AnEnqueueDoesNotWaitForTheSweeper) {
  EnqueueRequest request = a_job();
  request.guard = Guard::while_running;
  request.retry = kNoRetries;
  const Run first = add(request);
  take_one();
  advance(kDefaultLease);  // its attempts are used up: the lock is free
  const auto second = std::get<Enqueued>(verbs().enqueue(request));
  EXPECT_FALSE(second.duplicate);
  EXPECT_NE(second.run.id(), first.id());
  EXPECT_EQ(find(first.id()).status(), Status::failed);
}

TEST_P(Jobs, LatchkeysOwnRunsBlockTheirKeyInEveryState) {
  EnqueueRequest tick = a_job("tick");
  tick.made_by = MadeBy::latchkey;
  const Run run = add(tick);
  const auto is_duplicate = [&] {
    const auto reply = std::get<Enqueued>(verbs().enqueue(tick));
    return reply.duplicate && reply.run.id() == run.id() && reply.run.generation == 1;
  };
  EXPECT_TRUE(is_duplicate());
  end(take_one(), permanent());
  EXPECT_TRUE(is_duplicate());
  EXPECT_EQ(on_wire(verbs().claim(a_claim("tick"))).status, 409) << "only an operator opens the run again";
  move(run.id(), CancelByHand{});
  EXPECT_TRUE(is_duplicate());
  EXPECT_TRUE(take_up_to(10).empty());
}

}  // namespace
}  // namespace latchkey
