// A connection breaks at a COMMIT, for every operation: the reply is the same as without the fault, and the change is
// applied once.
#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

struct NamedFault {
  const char* name;
  ConnectionFault fault;
};
void PrintTo(const NamedFault& fault, std::ostream* out) { *out << fault.name; }

class LostCommitReply : public PostgresStores, public testing::WithParamInterface<NamedFault> {
 protected:
  using Run = latchkey::Run;
  Verbs verbs() { return Verbs(*store_); }
  Run find(RunId id) { return other_->find({}, id).value().value(); }
  std::size_t count(ListQuery query = {}) { return other_->list(query).value().runs.size(); }
  static EnqueueRequest keyless() { return {.function = "f", .input = "i"}; }

  // Injects the fault into the next commit, which `act` causes.
  auto with_fault(auto act) {
    const auto before = proxy_.fired();
    proxy_.arm(GetParam().fault);
    auto answer = act();
    EXPECT_EQ(proxy_.fired(), before + 1) << "the fault did not occur";
    return answer;
  }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 2});
  std::unique_ptr<Store> other_ = open(url());
};

INSTANTIATE_TEST_SUITE_P(
    About, LostCommitReply,
    testing::Values(NamedFault{"commit_not_sent", {FaultAt::commit_request, FaultHow::close}},
                    NamedFault{"commit_not_sent_reset", {FaultAt::commit_request, FaultHow::reset}},
                    NamedFault{"commit_sent_late", {FaultAt::commit_request, FaultHow::late, 0, 60ms}},
                    NamedFault{"commit_sent_much_later", {FaultAt::commit_request, FaultHow::late, 0, 400ms}},
                    NamedFault{"all_sent_late", {FaultAt::flight_request, FaultHow::late, 0, 100ms}},
                    NamedFault{"commit_reply_lost", {FaultAt::commit_reply, FaultHow::close}},
                    NamedFault{"commit_reply_lost_reset", {FaultAt::commit_reply, FaultHow::reset}},
                    NamedFault{"slow", {FaultAt::byte_request, FaultHow::slow, 0, 20ms}}),
    [](const auto& fault) { return std::string(fault.param.name); });

TEST_P(LostCommitReply, ClaimIsWonByItsCaller) {
  const auto reply = with_fault([&] { return verbs().claim(a_claim()); });
  const Won won = std::get<Won>(reply);
  EXPECT_EQ(find(won.run.id()).fence, won.fence);
  EXPECT_EQ(find(won.run.id()).attempt, 1u);
  EXPECT_TRUE(std::holds_alternative<Busy>(Verbs(*other_).claim(a_claim())));
  EXPECT_EQ(count(), 1u);
}

TEST_P(LostCommitReply, ClaimWithClaimIdIsWonOnce) {
  ClaimRequest request = a_claim();
  request.claim = id_of(42);
  const Won won = std::get<Won>(with_fault([&] { return verbs().claim(request); }));
  EXPECT_FALSE(won.repeated);
  const Won again = std::get<Won>(Verbs(*other_).claim(request));
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.fence, won.fence);
}

TEST_P(LostCommitReply, PlainEnqueueCreatesEachRunOnce) {
  const auto replies = with_fault([&] { return verbs().enqueue_all({keyless(), keyless(), keyless()}); });
  std::set<RunId> ids;
  for (const auto& reply : replies) {
    EXPECT_FALSE(std::get<Enqueued>(reply).duplicate);
    ids.insert(std::get<Enqueued>(reply).run.id());
  }
  EXPECT_EQ(ids.size(), 3u);
  std::set<RunId> listed;
  for (const auto& run : other_->list({}).value().runs) listed.insert(run.id());
  EXPECT_EQ(listed, ids);
}

TEST_P(LostCommitReply, EnqueueWithClaimIdCreatesOneRun) {
  EnqueueRequest request = keyless();
  request.claim = id_of(42);
  const auto made = std::get<Enqueued>(with_fault([&] { return verbs().enqueue(request); }));
  EXPECT_FALSE(made.duplicate);
  EXPECT_EQ(std::get<Enqueued>(Verbs(*other_).enqueue(request)).run.id(), made.run.id());
  EXPECT_EQ(count(), 1u);
}

TEST_P(LostCommitReply, EnqueueWithKeyIsNoDuplicate) {
  const auto made = std::get<Enqueued>(with_fault([&] { return verbs().enqueue(a_job()); }));
  EXPECT_FALSE(made.duplicate);
  const auto again = std::get<Enqueued>(Verbs(*other_).enqueue(a_job()));
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.run.id(), made.run.id());
}

TEST_P(LostCommitReply, TakenRunsBelongToTheirWorker) {
  for (int i = 0; i < 5; ++i) verbs().enqueue(keyless());
  const TakeRequest two{.functions = {"f"}, .limit = 2, .session = id_of(5)};
  const auto taken = with_fault([&] { return verbs().take(two); });
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(count({.status = Status::running}), 2u) << "a run is leased without a reply to its worker";
  for (const Taken& one : taken) {
    EXPECT_EQ(find(one.run.id()).fence, one.fence);
    EXPECT_EQ(find(one.run.id()).attempt, 1u);
  }
  // An orphaned backend may have locks for a moment, until the server detects the lost connection.
  std::size_t others = 0;
  for (int tries = 0; tries < 1000 && others < 3; ++tries)
    others += Verbs(*other_).take({.functions = {"f"}, .limit = 9, .session = id_of(6)}).size();
  EXPECT_EQ(others, 3u);
}

TEST_P(LostCommitReply, SettlementIsAcceptedOnce) {
  const Won won = std::get<Won>(verbs().claim(a_claim()));
  const SettleRequest complete{{}, won.run.id(), won.fence, Complete{"r", {keyless(), keyless()}}};
  const auto settled = std::get<Settled>(with_fault([&] { return verbs().settle(complete); }));
  EXPECT_TRUE(settled.changed);
  EXPECT_EQ(settled.follow_ups.size(), 2u);
  EXPECT_EQ(count({.status = Status::queued}), 2u) << "each follow-up exists once";
  EXPECT_EQ(find(won.run.id()).as<Completed>()->result, "r");
  EXPECT_FALSE(std::get<Settled>(Verbs(*other_).settle(complete)).changed);
}

TEST_P(LostCommitReply, DeadLetterCountsOneFailure) {
  const Won won = std::get<Won>(verbs().claim(a_claim()));
  const auto settled =
      std::get<Settled>(with_fault([&] { return verbs().settle({{}, won.run.id(), won.fence, permanent()}); }));
  EXPECT_TRUE(settled.changed);
  const auto letters = other_->list_dead_letters({}).value().entries;
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].id, settled.dead_letter);
  EXPECT_EQ(letters[0].count, 1u);
}

TEST_P(LostCommitReply, RetryCountsOneFailedAttempt) {
  verbs().enqueue(keyless());
  const Taken taken = verbs().take({.functions = {"f"}, .session = id_of(5)}).at(0);
  const auto settled =
      std::get<Settled>(with_fault([&] { return verbs().settle({{}, taken.run.id(), taken.fence, retryable()}); }));
  EXPECT_TRUE(settled.changed);
  EXPECT_EQ(find(taken.run.id()).failures, 1u);
  EXPECT_EQ(find(taken.run.id()).status(), Status::queued);
}

TEST_P(LostCommitReply, HeartbeatExtendsLease) {
  const Won won = std::get<Won>(verbs().claim(a_claim()));
  const auto extended =
      std::get<Extended>(with_fault([&] { return verbs().extend({{}, won.run.id(), won.fence, 3h}); }));
  EXPECT_EQ(find(won.run.id()).as<Running>()->lease_until, extended.lease_until);
}

TEST_P(LostCommitReply, OperatorActionIsAppliedOnce) {
  const auto made = std::get<Enqueued>(verbs().enqueue(keyless()));
  const MoveRequest cancel{{}, made.run.id(), CancelByHand{}};
  EXPECT_TRUE(std::get<Moved>(with_fault([&] { return verbs().move(cancel); })).changed);
  EXPECT_FALSE(std::get<Moved>(Verbs(*other_).move(cancel)).changed);
  EXPECT_EQ(find(made.run.id()).status(), Status::cancelled);
  const MoveRequest retry{{}, made.run.id(), RetryByHand{true}};
  EXPECT_TRUE(std::holds_alternative<Error>(verbs().move(retry))) << "a cancelled run was retried";
}

TEST_P(LostCommitReply, ReopenedRunGainsOneGeneration) {
  const Won won = std::get<Won>(verbs().claim(a_claim()));
  verbs().settle({{}, won.run.id(), won.fence, permanent()});
  const auto moved = std::get<Moved>(with_fault([&] { return verbs().move({{}, won.run.id(), RetryByHand{true}}); }));
  EXPECT_EQ(moved.run.generation, 2u);
  EXPECT_EQ(find(won.run.id()).generation, 2u);
  EXPECT_EQ(find(won.run.id()).effect_key, moved.run.effect_key) << "the effect key differs from the reply";
}

TEST_P(LostCommitReply, DuplicatesAreCountedOnce) {
  const Won won = std::get<Won>(verbs().claim(a_claim()));
  with_fault([&] {
    const Instant now = other_->now();
    verbs().note({won.run.id(), {.counts = {{"REPLAYED", 5, now, now}}, .latest = {}}});
    return 0;
  });
  const auto seen = other_->find_duplicates(won.run.id()).value().value();
  ASSERT_EQ(seen.counts.size(), 1u);
  EXPECT_EQ(seen.counts[0].count, 5u);
}

TEST_P(LostCommitReply, AcknowledgementNamesItsCaller) {
  const Won won = std::get<Won>(verbs().claim(a_claim()));
  const auto failed = std::get<Settled>(verbs().settle({{}, won.run.id(), won.fence, permanent()}));
  const auto result = with_fault([&] { return store_->acknowledge({}, *failed.dead_letter, "ann"); });
  ASSERT_TRUE(result) << to_string(result.error());
  ASSERT_TRUE(*result);
  EXPECT_EQ((*result)->acknowledged_by, "ann");
  ASSERT_TRUE((*result)->acknowledged_at);
  const auto again = other_->acknowledge({}, *failed.dead_letter, "bob").value().value();
  EXPECT_EQ(again.acknowledged_by, "ann");
  EXPECT_EQ(again.acknowledged_at, (*result)->acknowledged_at) << "the time differs from the first reply";
  EXPECT_EQ(again.count, 1u);
  EXPECT_TRUE(other_->list_dead_letters({}).value().entries.empty());
}

TEST_P(LostCommitReply, TokenIsAddedOnce) {
  const TokenRecord token{.id = "0123456789abcdef", .name = "ci", .role = Role::admin, .created_at = other_->now()};
  const auto result = with_fault([&] { return store_->add_token(token); });
  EXPECT_TRUE(result) << to_string(result.error());
  const auto tokens = other_->list_tokens().value();
  ASSERT_EQ(tokens.size(), 1u);
  EXPECT_EQ(tokens[0].id, token.id);
}

TEST_P(LostCommitReply, TokenIsRevokedOnce) {
  const TokenRecord token{.id = "0123456789abcdef", .name = "ci", .role = Role::admin, .created_at = other_->now()};
  ASSERT_TRUE(store_->add_token(token));
  const auto result = with_fault([&] { return store_->revoke_token(token.id); });
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_TRUE(*result);
  const auto revoked_at = other_->list_tokens().value().at(0).revoked_at;
  ASSERT_TRUE(revoked_at);
  EXPECT_TRUE(other_->revoke_token(token.id).value());
  EXPECT_EQ(other_->list_tokens().value().at(0).revoked_at, revoked_at);
}

class BatchExecutions : public PostgresStores {};

// The first execution of a batch reaches the server after the second was cut. The reply must describe the execution
// that committed, not the latest one.
TEST_F(BatchExecutions, ReplyIsFromTheCommittedExecution) {
  FaultProxy proxy(PgServer::instance().port());
  auto store = open(proxy.url(database()), {.writers = 1});
  auto other = open(url());
  for (int round = 0; round < 15; ++round) {
    proxy.arm({{FaultAt::flight_request, FaultHow::late, 0, ConnectionFault::kWithNextFault},
               {FaultAt::commit_request, FaultHow::close}});
    const std::string input = std::to_string(round);
    const auto made = std::get<Enqueued>(Verbs(*store).enqueue({.function = "f", .input = input}));
    const auto listed = other->list({.limit = 1}).value().runs;
    ASSERT_EQ(listed.size(), 1u);
    EXPECT_EQ(listed[0].head->input, input);
    EXPECT_EQ(made.run.id(), listed[0].id());
    const auto taken = Verbs(*store).take({.functions = {"f"}, .limit = 9, .session = id_of(5)});
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken[0].run.id(), made.run.id());
  }
  EXPECT_EQ(proxy.fired(), 30u);
}

// Cuts the connection at any byte, not only at a COMMIT. Each round moves the cut further, until the calls end before
// it.
class ByteFaultWalk : public PostgresStores, public testing::WithParamInterface<FaultAt> {};
INSTANTIATE_TEST_SUITE_P(Of, ByteFaultWalk, testing::Values(FaultAt::byte_request, FaultAt::byte_reply),
                         [](const auto& at) { return at.param == FaultAt::byte_request ? "request" : "reply"; });

TEST_P(ByteFaultWalk, CutAtAnyByteChangesNoReply) {
  FaultProxy proxy(PgServer::instance().port());
  auto store = open(proxy.url(database()), {.writers = 1});
  auto other = open(url());
  SeededRandom random(7);
  std::uint64_t cuts = 0, rounds = 0;
  for (std::uint64_t byte = 0;; byte += 1 + random.below(200)) {
    const auto before = proxy.fired();
    proxy.arm({GetParam(), random.one_in(2) ? FaultHow::close : FaultHow::reset, byte});
    ++rounds;
    const auto made = std::get<Enqueued>(Verbs(*store).enqueue({.function = "f", .input = "i"}));
    const auto taken = Verbs(*store).take({.functions = {"f"}, .limit = 9, .session = id_of(5)});
    ASSERT_EQ(taken.size(), 1u) << "cut at byte " << byte;
    EXPECT_EQ(taken[0].run.id(), made.run.id());
    const auto settled = Verbs(*store).settle({{}, taken[0].run.id(), taken[0].fence, Complete{"r", {}}});
    EXPECT_TRUE(std::get<Settled>(settled).changed) << "cut at byte " << byte;
    if (proxy.fired() == before) break;
    ++cuts;
  }
  EXPECT_GT(cuts, 20u);
  EXPECT_EQ(other->list({.status = Status::completed, .limit = 1000}).value().runs.size(), rounds);
  EXPECT_EQ(other->list({.limit = 1000}).value().runs.size(), rounds);
}

}  // namespace
}  // namespace latchkey
