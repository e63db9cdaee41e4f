// Settling of attempts: once, by the newest owner, with all its consequences in one transaction.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Settling : public StoreTest {};
LK_CONFORMANCE(Settling);

TEST_P(Settling, AScheduleIsFollowedDelayByDelay) {
  ClaimRequest request = a_claim();
  request.retry = {.retries = 3, .schedule = {2s, 1h}};
  for (const Duration delay : {Duration{2s}, Duration{1h}, Duration{1h}}) {
    EXPECT_EQ(end(win(request), retryable()).run.as<Queued>()->due_at, now() + delay);
    advance(delay);
  }
  EXPECT_EQ(end(win(request), retryable()).run.status(), Status::failed);
}

TEST_P(Settling, RepeatedSettleGetsTheSameReply) {
  const Won won = win();
  const Settled first = end(won, Complete{"one", {}});
  EXPECT_TRUE(first.changed);
  advance(1s);
  const Settled again = end(won, Complete{"two", {}});
  EXPECT_FALSE(again.changed);
  EXPECT_TRUE(same_run(again.run, first.run));
  EXPECT_EQ(again.run.as<Completed>()->result, "one");
}

TEST_P(Settling, AnotherKindIsRefused) {
  const Won won = win();
  end(won);
  EXPECT_EQ(code_of(verbs().settle({{}, won.run.id(), won.fence, permanent()})), Code::ALREADY_SETTLED);
  EXPECT_EQ(code_of(verbs().settle({{}, won.run.id(), won.fence, Release{}})), Code::ALREADY_SETTLED);
  EXPECT_EQ(find(won.run.id()).status(), Status::completed);
}

TEST_P(Settling, AStaleFenceIsRefusedAndChangesNothing) {
  const Won first = win();
  advance(kDefaultLease);
  const Won second = win();
  for (const Ending& ending : {Ending{Complete{"x", {}}}, Ending{permanent()}, Ending{Release{}}})
    EXPECT_EQ(code_of(verbs().settle({{}, first.run.id(), first.fence, ending})), Code::LEASE_LOST);
  EXPECT_TRUE(same_run(second.run, find(first.run.id())));
  EXPECT_EQ(code_of(verbs().settle({{}, id_of(9), second.fence, Complete{}})), Code::NOT_FOUND);
}

TEST_P(Settling, LateSettleIsAcceptedUntilTheNextAttempt) {
  const Won won = win();
  advance(kDefaultLease + 1h);
  verbs().sweep();
  EXPECT_EQ(end(won).run.status(), Status::completed) << "the run was not claimed again";

  ClaimRequest held = a_claim("held");
  held.on_doubt = OnDoubt::hold;
  const Won doubtful = win(held);
  advance(kDefaultLease);
  verbs().sweep();
  EXPECT_EQ(find(doubtful.run.id()).status(), Status::in_doubt);
  EXPECT_EQ(end(doubtful).run.status(), Status::completed);

  add(a_job("job"));
  const Taken taken = take_one();
  advance(kDefaultLease);
  verbs().sweep();
  EXPECT_EQ(code_of(verbs().settle({{}, taken.run.id(), taken.fence, Complete{}})), Code::LEASE_LOST);
}

TEST_P(Settling, RetriesFollowThePolicyToADeadLetter) {
  add(a_job());
  for (const Duration delay : {Duration{1s}, Duration{5s}, Duration{25s}}) {
    const Taken taken = take_one();
    const Settled failed = end(taken, retryable());
    EXPECT_EQ(failed.run.as<Queued>()->due_at, now() + delay);
    EXPECT_FALSE(failed.dead_letter);
    advance(delay - 1ms);
    EXPECT_TRUE(take_up_to(1).empty());
    advance(1ms);
  }
  const Taken last = take_one();
  const Settled used_up = end(last, retryable("at last"));
  EXPECT_EQ(used_up.run.as<Failed>()->code, "MAX_RETRIES_EXCEEDED");
  ASSERT_TRUE(used_up.dead_letter);
  const Settled again = end(last, retryable());
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(again.dead_letter, used_up.dead_letter);
  const auto members = store().list_members(*used_up.dead_letter, 10).value();
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members[0].attempts, 4u);
  EXPECT_EQ(members[0].reason, "at last");
}

TEST_P(Settling, ReleasedAttemptsDoNotLengthenTheDelay) {
  const auto delay = [&](const Won& won) { return end(won, retryable()).run.as<Queued>()->due_at - now(); };
  end(win(), Release{});
  end(win(), Snooze{1s});
  advance(1s);
  EXPECT_EQ(delay(win()), 1s);
  advance(1s);
  end(win(), Release{});
  opened().reopen();
  if (!opened().is_durable()) return;
  EXPECT_EQ(delay(win()), 5s);
  advance(5s);
  EXPECT_EQ(delay(win()), 25s);
}

TEST_P(Settling, UnknownOutcomeIsInDoubtUnderHold) {
  ClaimRequest request = a_claim();
  request.on_doubt = OnDoubt::hold;
  const Won won = win(request);
  const Settled doubted = end(won, outcome_unknown());
  EXPECT_EQ(doubted.run.status(), Status::in_doubt);
  advance(1h);
  EXPECT_FALSE(end(won, outcome_unknown()).changed);
  EXPECT_EQ(find(won.run.id()).as<InDoubt>()->since, now() - 1h) << "the doubt began at the first report";
}

TEST_P(Settling, BeginningOfALongMessageIsStored) {
  ClaimRequest request = a_claim();
  request.on_doubt = OnDoubt::hold;
  const Won won = win(request);
  Fail wordy = outcome_unknown();
  wordy.message = "boom: " + std::string(1 << 20, 'x');
  const Run doubted = end(won, wordy).run;
  EXPECT_LE(doubted.last_error.size(), 64u * 1024);
  EXPECT_TRUE(doubted.last_error.starts_with("boom: x"));
  EXPECT_TRUE(doubted.last_error.ends_with("\n… (983110 more bytes were not stored)"));
  EXPECT_TRUE(same_run(doubted, find(won.run.id())));
  EXPECT_FALSE(end(won, wordy).changed) << "a repeat is recognised by the stored part of the message";

  const Settled failed = end(win(a_claim("other")), permanent(wordy.message));
  ASSERT_TRUE(failed.dead_letter);
  EXPECT_EQ(store().list_members(*failed.dead_letter, 1).value().at(0).reason, doubted.last_error);
  EXPECT_EQ(move(won.run.id(), ResolveFailed{wordy.message}).run.last_error, doubted.last_error);
}

TEST_P(Settling, ReleasedRunHasOneMoreAttempt) {
  EnqueueRequest job = a_job();
  job.retry = kNoRetries;
  add(job);
  for (int i = 0; i < 5; ++i) {
    const Taken taken = take_one();
    EXPECT_EQ(taken.run.attempt, i + 1u);
    EXPECT_TRUE(end(taken, Release{}).changed);
    EXPECT_FALSE(end(taken, Release{}).changed);
  }
  const Taken taken = take_one();
  end(taken, Snooze{5min});
  EXPECT_TRUE(take_up_to(1).empty());
  advance(5min);
  EXPECT_EQ(end(take_one(), retryable()).run.status(), Status::failed);
}

TEST_P(Settling, ReleaseAfterAFailureCancelsOnlyItsDelay) {
  ClaimRequest request = a_claim();
  request.retry.retries = 2;
  const Won first = win(request);
  const Run failed = end(first, retryable()).run;
  ASSERT_GT(failed.as<Queued>()->due_at, now());
  EXPECT_TRUE(std::holds_alternative<NotDue>(verbs().claim(request)));
  const Settled given = end(first, Release{});
  EXPECT_TRUE(given.changed);
  EXPECT_EQ(given.run.as<Queued>()->due_at, now());
  EXPECT_TRUE(same_run(given.run, find(first.run.id())));
  EXPECT_FALSE(end(first, Release{}).changed);

  const Won second = win(request);
  EXPECT_EQ(second.run.id(), first.run.id());
  EXPECT_EQ(second.run.effect_key, first.run.effect_key);
  EXPECT_EQ(second.run.attempt, 2u);
  EXPECT_EQ(second.run.attempts_max, 3u) << "the failed attempt counts";
  // A late release changes neither the second owner's attempt nor its retry delay.
  EXPECT_EQ(code_of(verbs().settle({{}, first.run.id(), first.fence, Release{}})), Code::LEASE_LOST);
  EXPECT_TRUE(same_run(second.run, find(first.run.id())));
  const Run waiting = end(second, retryable()).run;
  EXPECT_EQ(code_of(verbs().settle({{}, first.run.id(), first.fence, Release{}})), Code::LEASE_LOST);
  EXPECT_TRUE(same_run(waiting, find(first.run.id())));
}

TEST_P(Settling, ReleasedRunFailsAfterADayWithoutAClaim) {
  const Won won = win();
  Fail late = std::get<Fail>(Ending{retryable()});
  late.retry_after = 10h;
  end(won, late);
  end(won, Release{});
  advance(24h - 1ms);
  verbs().sweep();
  EXPECT_EQ(find(won.run.id()).status(), Status::queued);
  advance(1ms);
  verbs().sweep();
  EXPECT_EQ(find(won.run.id()).status(), Status::failed);
}

TEST_P(Settling, RefusedFollowUpIsReportedOutcomeStays) {
  const Run other = add(a_job("taken"));
  EnqueueRequest refused = a_job("taken"), made = a_job("free");
  refused.fingerprint = kOther;
  const Won won = win();
  const Ending done = Complete{"r", {refused, made}};
  const Settled settled = end(won, done);
  EXPECT_EQ(settled.run.status(), Status::completed);
  ASSERT_EQ(settled.follow_ups.size(), 2u);
  EXPECT_EQ(std::get<Mismatch>(settled.follow_ups[0]).existing, other.id());
  EXPECT_FALSE(std::get<Enqueued>(settled.follow_ups[1]).duplicate);
  const Settled again = end(won, done);
  EXPECT_FALSE(again.changed);
  ASSERT_EQ(again.follow_ups.size(), 2u) << "a repeated settle gets the same reply";
  EXPECT_EQ(std::get<Mismatch>(again.follow_ups[0]).existing, other.id());
  EXPECT_FALSE(std::get<Enqueued>(again.follow_ups[1]).duplicate);
  EXPECT_EQ(std::get<Enqueued>(again.follow_ups[1]).run.id(), std::get<Enqueued>(settled.follow_ups[1]).run.id());
  EXPECT_EQ(take_up_to(10).size(), 2u);
}

// covers: E8
TEST_P(Settling, FollowUpsComeWithTheOutcome) {
  const Won won = win(a_claim("k", "acme"));
  EnqueueRequest mail, later;
  mail.function = later.function = "mail";
  mail.input = "now";
  later.input = "later";
  later.delay = 1h;
  const Ending done = Complete{"r", {mail, later}};
  EXPECT_TRUE(take_up_to(10, "mail").empty());
  end(won, done);
  end(won, done);  // a repeat after a lost reply
  const auto first = take_up_to(10, "mail");
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].run.head->input, "now");
  EXPECT_EQ(first[0].run.head->tenant, "acme");
  EXPECT_EQ(first[0].run.head->made_by, MadeBy::latchkey);
  advance(1h);
  EXPECT_EQ(take_up_to(10, "mail").size(), 1u);
}

TEST_P(Settling, FollowUpWithAKeyIsAnOrdinaryRequest) {
  const auto follow_up = [] {
    EnqueueRequest request = a_job("shared");
    request.tenant = "somewhere";  // replaced by the parent's tenant, also in the key
    request.key_hash = hash_key("somewhere", "f", "shared");
    return request;
  };
  const Run first = add(a_job("shared"));
  end(win(a_claim("parent1")), Complete{"", {follow_up()}});
  ASSERT_EQ(take_up_to(10).size(), 1u) << "the second follow-up is a duplicate of the queued one";
  move(first.id(), CancelByHand{});
  advance(kDefaultLease);
  verbs().sweep();
  EXPECT_EQ(find(first.id()).status(), Status::cancelled);
  end(win(a_claim("parent2")), Complete{"", {follow_up()}});
  ASSERT_EQ(take_up_to(10).size(), 1u) << "the key was free, so the follow-up must be enqueued";
}

TEST_P(Settling, FollowUpWithUnknownPredecessorIsRefused) {
  const Won won = win();
  EnqueueRequest good = a_job("good"), bad = a_job("bad");
  bad.after = {id_of(1234)};
  EXPECT_EQ(code_of(verbs().settle({{}, won.run.id(), won.fence, Complete{"", {good, bad}}})),
            Code::PREDECESSOR_UNKNOWN);
  EXPECT_EQ(find(won.run.id()).status(), Status::running);
  EXPECT_TRUE(take_up_to(10).empty());
  EXPECT_TRUE(end(won).changed);
}

TEST_P(Settling, ABatchSettlesEachOnItsOwn) {
  const Won a = win(a_claim("a")), b = win(a_claim("b"));
  const auto replies = verbs().settle_all({{{}, a.run.id(), a.fence, Complete{"a", {}}},
                                           {{}, b.run.id(), a.fence, Complete{"b", {}}},
                                           {{}, b.run.id(), b.fence, permanent()},
                                           {{}, a.run.id(), a.fence, permanent()}});
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_EQ(std::get<Settled>(replies[0]).run.status(), Status::completed);
  EXPECT_EQ(code_of(replies[1]), Code::LEASE_LOST);
  EXPECT_EQ(std::get<Settled>(replies[2]).run.status(), Status::failed);
  EXPECT_EQ(code_of(replies[3]), Code::ALREADY_SETTLED);
}

}  // namespace
}  // namespace latchkey
