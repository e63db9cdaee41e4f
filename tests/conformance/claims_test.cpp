// The repeat table, row by row, with the store's verbs; and fingerprints.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class RepeatRows : public StoreTestBase, public testing::TestWithParam<std::tuple<Backend, RepeatRow>> {
 public:
  using Run = latchkey::Run;
  RepeatRows() : StoreTestBase(std::get<0>(GetParam())) {}

 protected:
  const RepeatRow row = std::get<1>(GetParam());
  const std::optional<Run> before = reach(row.state);

  void ask_as_the_row_says(auto& request) const {
    if (is_lock(row.state)) request.guard = Guard::while_running;
    if (row.state == KeyState::failed_unknown_hold) request.on_doubt = OnDoubt::hold;
  }
  ClaimRequest a_repeat() const {
    ClaimRequest request = a_claim();
    ask_as_the_row_says(request);
    return request;
  }
  EnqueueRequest a_repeated_job() const {
    EnqueueRequest request = a_job();
    ask_as_the_row_says(request);
    return request;
  }
  std::optional<Run> latest() {
    return store().find_latest({"default", "f", "k", hash_key("default", "f", "k")}).value();
  }
};

TEST_P(RepeatRows, Claim) {
  const ClaimReply reply = verbs().claim(a_repeat());
  EXPECT_EQ(classify(reply, before), row.claim);
  EXPECT_EQ(on_wire(reply), (WireAnswer{row.status, std::string(row.code), row.retry_after}));
  if (const auto* won = std::get_if<Won>(&reply)) {
    EXPECT_TRUE(same_run(won->run, find(won->run.id()))) << "the reply differs from the stored run";
    EXPECT_EQ(latest()->id(), won->run.id());
    if (before) EXPECT_GT(won->fence, before->fence);
    EXPECT_EQ(won->lease_until, now() + kDefaultLease);
  }
  if (const auto* replay = std::get_if<Replay>(&reply)) EXPECT_EQ(replay->run.as<Completed>()->result, "result");
}

TEST_P(RepeatRows, Enqueue) {
  const EnqueueReply reply = verbs().enqueue(a_repeated_job());
  EXPECT_EQ(classify(reply, before), row.enqueue);
  const auto& enqueued = std::get<Enqueued>(reply);
  EXPECT_TRUE(same_run(enqueued.run, find(enqueued.run.id())));
  EXPECT_EQ(latest()->id(), enqueued.run.id());
  if (!enqueued.duplicate) EXPECT_EQ(take_one().run.id(), enqueued.run.id());
}

// covers: B2
TEST_P(RepeatRows, AnotherFingerprintChangesNothing) {
  ClaimRequest claim = a_repeat();
  claim.fingerprint = kOther;
  EnqueueRequest job = a_repeated_job();
  job.fingerprint = kOther;
  if (!row.fingerprint_checked) {
    EXPECT_EQ(on_wire(verbs().claim(claim)).status, 201);
    return;
  }
  const ClaimReply reply = verbs().claim(claim);
  EXPECT_EQ(on_wire(reply), (WireAnswer{422, "KEY_REUSED", false}));
  EXPECT_EQ(std::get<Mismatch>(reply).existing, before->id());
  EXPECT_EQ(std::get<Mismatch>(verbs().enqueue(job)).existing, before->id());
  EXPECT_TRUE(same_run(*before, find(before->id())));
}

// The reply to a second repeat follows from the state after the first; a sweep between them changes nothing.
TEST_P(RepeatRows, SweepBeforeTheRepeatChangesNoReply) {
  verbs().sweep();
  const ClaimReply reply = verbs().claim(a_repeat());
  EXPECT_EQ(on_wire(reply), (WireAnswer{row.status, std::string(row.code), row.retry_after}));
}

TEST_P(RepeatRows, ReplyIsTheSameAfterReopening) {
  opened().reopen();
  const ClaimReply reply = verbs().claim(a_repeat());
  if (opened().is_durable()) {
    EXPECT_EQ(on_wire(reply), (WireAnswer{row.status, std::string(row.code), row.retry_after}));
  } else {
    EXPECT_EQ(classify(reply, {}), ClaimAnswer::new_run);
  }
}

INSTANTIATE_TEST_SUITE_P(On, RepeatRows,
                         testing::Combine(testing::ValuesIn(backends()), testing::ValuesIn(kRepeatTable)),
                         [](const auto& row) {
                           return std::get<0>(row.param).name + "_" + std::string(name(std::get<1>(row.param).state));
                         });

class Claiming : public StoreTest {};
LK_CONFORMANCE(Claiming);

TEST_P(Claiming, RepeatGetsItsOwnClaim) {
  ClaimRequest request = a_claim();
  request.claim = id_of(42);
  const Won first = win(request);
  advance(1s);
  const Won again = win(request);
  EXPECT_EQ(again.run.id(), first.run.id());
  EXPECT_EQ(again.fence, first.fence);
  EXPECT_EQ(again.lease_until, first.lease_until);
  EXPECT_EQ(find(first.run.id()).attempt, 1u);
  request.claim = id_of(43);
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(request)));
}

// A key that was built from the time: a repeat of a call is recognised by its claim id under the previous bucket's key.
TEST_P(Claiming, RepeatAfterItsBucketGetsItsOwnClaim) {
  const auto in_bucket = [](const char* key, const char* before, std::uint64_t call) {
    ClaimRequest request = a_claim(key);
    request.fingerprint.reset();
    request.claim = id_of(call);
    request.key_before = before;
    request.key_before_hash = hash_key(request.tenant, request.function, before);
    return request;
  };
  const Won first = win(in_bucket("10:00", "09:00", 42));
  const Won again = win(in_bucket("11:00", "10:00", 42));
  EXPECT_EQ(again.run.id(), first.run.id());
  EXPECT_EQ(again.fence, first.fence);
  const Won other = win(in_bucket("11:00", "10:00", 43));
  EXPECT_NE(other.run.id(), first.run.id()) << "another call gets the new bucket's key";
  EXPECT_EQ(other.run.head->key, "11:00");
  end(first);
  EXPECT_EQ(std::get<Replay>(verbs().claim(in_bucket("11:00", "10:00", 42))).run.id(), first.run.id());
  move(other.run.id(), CancelByHand{});
  end(other, Release{});
  EXPECT_EQ(win(in_bucket("12:00", "11:00", 43)).run.head->key, "12:00") << "a cancelled run does not block its key";
}

TEST_P(Claiming, ReopeningClaimSetsTheRetries) {
  ClaimRequest request = a_claim();
  request.retry = kNoRetries;
  end(win(request), retryable());
  request.retry.retries = 1;
  const Won again = win(request);
  EXPECT_EQ(again.run.generation, 2u);
  EXPECT_EQ(find(again.run.id()).attempts_max, 2u);
  EXPECT_EQ(end(again, retryable()).run.status(), Status::queued);
  advance(1s);
  EXPECT_EQ(end(win(request), retryable()).run.status(), Status::failed);
  EnqueueRequest job = a_job();
  job.retry.retries = 2;
  EXPECT_EQ(add(job).attempts_max, 3u);
  end(take_one(), permanent());
  EXPECT_EQ(move(again.run.id(), RetryByHand{}).run.attempts_max, 1u)
      << "an operator's retry has the run's own retries";
}

TEST_P(Claiming, UnguardedRepeatNeedsTheSameInput) {
  ClaimRequest request = a_claim("a");
  request.guard = Guard::none;
  request.claim = id_of(42);
  request.input = "1";
  const Won first = win(request);
  // The key may have been built from the time, which has changed.
  ClaimRequest later = a_claim("b");
  later.guard = Guard::none;
  later.claim = request.claim;
  later.input = request.input;
  EXPECT_EQ(win(later).run.id(), first.run.id());
  EXPECT_EQ(win(later).fence, first.fence);
  later.input = "2";
  EXPECT_TRUE(std::holds_alternative<Mismatch>(verbs().claim(later)));
  EnqueueRequest job;
  job.function = "f";
  job.claim = id_of(43);
  job.input = "1";
  const Run added = add(job);
  EXPECT_EQ(add(job).id(), added.id());
  job.input = "2";
  EXPECT_TRUE(std::holds_alternative<Mismatch>(verbs().enqueue(job)));
}

TEST_P(Claiming, StoresEveryFieldOfTheClaim) {
  ClaimRequest request = a_claim("order-5", "acme");
  request.input = "{\"a\":1}";
  request.caller = "someone";
  request.window = 5min;
  request.lease = 7s;
  request.on_doubt = OnDoubt::hold;
  request.retry = {.retries = 9, .first = 2s, .factor = 3, .ceiling = 4min, .total = 5h, .jitter = Jitter::equal};
  const Run run = find(win(request).run.id());
  const RunHead& head = *run.head;
  EXPECT_EQ(head.tenant, "acme");
  EXPECT_EQ(head.function, "f");
  EXPECT_EQ(head.key, "order-5");
  EXPECT_EQ(head.key_hash, request.key_hash);
  EXPECT_EQ(head.guard, Guard::once);
  EXPECT_EQ(head.on_doubt, OnDoubt::hold);
  EXPECT_EQ(head.fingerprint, kSame);
  EXPECT_EQ(head.retry, request.retry);
  EXPECT_EQ(head.window, 5min);
  EXPECT_EQ(head.lease, 7s);
  EXPECT_EQ(head.input, request.input);
  EXPECT_EQ(head.caller, "someone");
  EXPECT_EQ(head.created_at, now());
  EXPECT_EQ(run.origin, Origin::claimed);
  EXPECT_EQ(run.effect_key, run.id());
}

TEST_P(Claiming, ALockHasNoFingerprint) {
  ClaimRequest request = a_claim();
  request.guard = Guard::while_running;
  win(request);
  request.fingerprint = kOther;
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(request)));
}

TEST_P(Claiming, AKeyFromATemplateHasNoFingerprint) {
  ClaimRequest request = a_claim();
  request.fingerprint.reset();
  end(win(request));
  request.fingerprint = kOther;
  EXPECT_TRUE(std::holds_alternative<Replay>(verbs().claim(request)));
}

TEST_P(Claiming, WithoutAGuardThereIsOnlyHistory) {
  ClaimRequest request = a_claim();
  request.guard = Guard::none;
  EXPECT_NE(win(request).run.id(), win(request).run.id());
  request.key.clear();
  request.guard = Guard::once;
  EXPECT_NE(win(request).run.id(), win(request).run.id());
}

TEST_P(Claiming, TheSameKeyOfTwoFunctionsIsTwoKeys) {
  win(a_claim());
  ClaimRequest other = a_claim();
  other.function = "g";
  other.key_hash = hash_key("default", "g", "k");
  win(other);
}

TEST_P(Claiming, CancelRequestFreesTheKeyAtTheLeasesEnd) {
  const Won won = win();
  move(won.run.id(), CancelByHand{});
  EXPECT_TRUE(std::holds_alternative<Busy>(verbs().claim(a_claim()))) << "the run still has its key";
  advance(kDefaultLease);
  EXPECT_NE(win().run.id(), won.run.id());
  EXPECT_EQ(find(won.run.id()).as<Cancelled>()->effect, Effect::unknown);
}

TEST_P(Claiming, UsedUpAttemptsLeaveADeadLetterFirst) {
  ClaimRequest request = a_claim();
  request.retry = kNoRetries;
  const Won first = win(request);
  advance(kDefaultLease);
  const Won second = win(request);
  EXPECT_EQ(second.run.id(), first.run.id());
  EXPECT_EQ(second.run.generation, 2u);
  const auto dead_letters = store().list_dead_letters({}).value();
  ASSERT_EQ(dead_letters.entries.size(), 1u);
  EXPECT_EQ(dead_letters.entries[0].code, "OUTCOME_UNKNOWN");
}

}  // namespace
}  // namespace latchkey
