// Operator actions on dead letters, and their purge.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class DeadLetterActions : public StoreTest {
 protected:
  Settled fail_one(const std::string& key) { return end(win(a_claim(key)), permanent()); }
  DeadLetterActionReply moved(DeadLetterActionRequest wish) { return store().act_on_dead_letter(wish).value().value(); }
  DeadLetterActionRequest wish(Uuid dead_letter, Move move) {
    return {.dead_letter = dead_letter, .move = std::move(move), .by = "ada", .note = "n"};
  }
  std::vector<DeadLetterMember> members(Uuid dead_letter) { return store().list_members(dead_letter, 100).value(); }
  static int changed(const DeadLetterActionReply& moved) {
    return static_cast<int>(std::ranges::count(moved.members, true, &MemberActionReply::changed));
  }
};
LK_CONFORMANCE(DeadLetterActions);

TEST_P(DeadLetterActions, MembersAreListedPageByPage) {
  std::vector<RunId> failed;
  for (const char* key : {"a", "b", "c", "d"}) failed.push_back(fail_one(key).run.id());
  const Uuid dead_letter = *fail_one("b").dead_letter;  // its second generation: another member
  const auto all = members(dead_letter);
  ASSERT_EQ(all.size(), 5u);
  std::vector<std::pair<RunId, std::uint32_t>> seen;
  for (MemberPosition after{};;) {
    const auto page = store().list_members(dead_letter, 2, after).value();
    for (const DeadLetterMember& member : page) seen.emplace_back(member.run, member.generation);
    if (page.size() < 2) break;
    after = position_of(page.back());
  }
  using Seen = std::vector<std::pair<RunId, std::uint32_t>>;
  EXPECT_EQ(seen, (Seen{{failed[0], 1}, {failed[1], 1}, {failed[1], 2}, {failed[2], 1}, {failed[3], 1}}));
}

// covers: A7
TEST_P(DeadLetterActions, RetryOpensAllAndIsRecorded) {
  const Settled a = fail_one("a"), b = fail_one("b");
  advance(1s);
  EXPECT_EQ(changed(moved(wish(*a.dead_letter, RetryByHand{}))), 2);
  for (const RunId& id : {a.run.id(), b.run.id()}) {
    EXPECT_EQ(find(id).status(), Status::queued);
    EXPECT_EQ(find(id).generation, 2u);
  }
  for (const DeadLetterMember& member : members(*a.dead_letter)) {
    ASSERT_EQ(member.steps.size(), 1u);
    EXPECT_EQ(member.steps[0].kind, StepKind::retried);
    EXPECT_EQ(member.steps[0].by, "ada");
    EXPECT_EQ(member.steps[0].at, now());
    EXPECT_EQ(member.steps[0].note, "n");
  }
  EXPECT_EQ(changed(moved(wish(*a.dead_letter, RetryByHand{}))), 0) << "a repeat changes nothing";
  EXPECT_EQ(find(a.run.id()).generation, 2u);
  opened().reopen();
  if (opened().is_durable()) EXPECT_EQ(members(*a.dead_letter)[0].steps.at(0).by, "ada");
}

TEST_P(DeadLetterActions, OnlyNamedMembersAreRetried) {
  const Settled a = fail_one("a"), b = fail_one("b");
  DeadLetterActionRequest some = wish(*a.dead_letter, RetryByHand{.fresh_effect_key = true});
  some.runs = {b.run.id(), id_of(99)};
  const DeadLetterActionReply reply = moved(some);
  ASSERT_EQ(reply.members.size(), 2u);
  EXPECT_TRUE(reply.members[0].changed);
  EXPECT_EQ(reply.members[1].refused->code, Code::NOT_FOUND);
  EXPECT_NE(find(b.run.id()).effect_key, b.run.id());
  EXPECT_EQ(find(a.run.id()).status(), Status::failed);
}

TEST_P(DeadLetterActions, ReopenedMemberIsNotChanged) {
  const Settled a = fail_one("a");
  const Won again = win(a_claim("a"));
  const auto refused = [&](Move move) { return moved(wish(*a.dead_letter, std::move(move))).members[0].refused; };
  EXPECT_EQ(refused(ResolveCompleted{"x"}).value().code, Code::MOVE_REFUSED) << "the run is running";
  EXPECT_EQ(refused(ResolveFailed{"n"}).value().code, Code::MOVE_REFUSED);
  EXPECT_FALSE(refused(RetryByHand{})) << "the run was retried already";
  EXPECT_EQ(find(a.run.id()).status(), Status::running);
  EXPECT_TRUE(members(*a.dead_letter)[0].steps.empty());
  end(again);
  EXPECT_FALSE(refused(ResolveCompleted{"x"})) << "the run is completed already";
  EXPECT_NE(find(a.run.id()).as<Completed>()->result, "x");
  EXPECT_EQ(refused(ResolveFailed{"n"}).value().code, Code::MOVE_REFUSED) << "the run is completed";
  EXPECT_EQ(refused(RetryByHand{}).value().code, Code::MOVE_REFUSED);
}

TEST_P(DeadLetterActions, QueuedMemberIsNotResolved) {
  const Settled a = fail_one("a");
  moved(wish(*a.dead_letter, RetryByHand{}));
  const DeadLetterActionReply reply = moved(wish(*a.dead_letter, ResolveCompleted{"x"}));
  EXPECT_EQ(reply.members[0].refused.value().code, Code::MOVE_REFUSED);
  EXPECT_FALSE(reply.members[0].changed);
  EXPECT_EQ(find(a.run.id()).status(), Status::queued);
}

TEST_P(DeadLetterActions, LaterFailureOfARunIsMeant) {
  const Settled first = fail_one("a"), second = fail_one("a");
  ASSERT_EQ(first.dead_letter, second.dead_letter);
  const DeadLetterActionReply both = moved(wish(*first.dead_letter, ResolveCompleted{"x"}));
  ASSERT_EQ(both.members.size(), 2u);
  EXPECT_FALSE(both.members[0].refused || both.members[0].changed);
  EXPECT_TRUE(both.members[1].changed);
}

TEST_P(DeadLetterActions, OtherEntrysFailureIsNotChanged) {
  const Settled first = fail_one("a");
  store().acknowledge({}, *first.dead_letter, "ada").value();
  const Settled second = fail_one("a");
  ASSERT_NE(first.dead_letter, second.dead_letter);
  EXPECT_EQ(moved(wish(*first.dead_letter, ResolveCompleted{"x"})).members[0].refused.value().code, Code::MOVE_REFUSED);
  EXPECT_FALSE(moved(wish(*first.dead_letter, ResolveFailed{"n"})).members[0].refused) << "the run is failed already";
}

TEST_P(DeadLetterActions, ResolveCompletedReleasesWaits) {
  const Settled a = fail_one("a");
  EnqueueRequest next = a_job("next");
  next.after = {a.run.id()};
  add(next);
  EXPECT_TRUE(take_up_to(10).empty());
  EXPECT_EQ(changed(moved(wish(*a.dead_letter, ResolveCompleted{"by hand"}))), 1);
  EXPECT_EQ(std::get<Replay>(verbs().claim(a_claim("a"))).run.as<Completed>()->result, "by hand");
  EXPECT_EQ(take_up_to(10).size(), 1u);
  EXPECT_EQ(members(*a.dead_letter)[0].steps.at(0).kind, StepKind::completed);
  EXPECT_EQ(changed(moved(wish(*a.dead_letter, ResolveCompleted{"other"}))), 0);
  EXPECT_EQ(find(a.run.id()).as<Completed>()->result, "by hand");
  EXPECT_EQ(moved(wish(*a.dead_letter, RetryByHand{})).members[0].refused->code, Code::MOVE_REFUSED);
  opened().reopen();
  if (opened().is_durable()) EXPECT_EQ(find(a.run.id()).status(), Status::completed);
}

TEST_P(DeadLetterActions, ResolveFailedIsRecordedOnce) {
  const Settled a = fail_one("a");
  EXPECT_EQ(changed(moved(wish(*a.dead_letter, ResolveFailed{"n"}))), 1);
  advance(1s);
  EXPECT_EQ(changed(moved(wish(*a.dead_letter, ResolveFailed{"n"}))), 0);
  EXPECT_EQ(find(a.run.id()).status(), Status::failed);
  EXPECT_EQ(members(*a.dead_letter)[0].steps.at(0).at, now() - 1s) << "the first step is stored";
}

TEST_P(DeadLetterActions, LockStaysWithItsNewerRun) {
  ClaimRequest lock = a_claim("a");
  lock.guard = Guard::while_running;
  const Settled old = end(win(lock), permanent());
  const Won newer = win(lock);
  EXPECT_EQ(moved(wish(*old.dead_letter, RetryByHand{})).members[0].refused->code, Code::MOVE_REFUSED);
  EXPECT_EQ(changed(moved(wish(*old.dead_letter, ResolveCompleted{""}))), 1)
      << "a completed lock does not block its key";
  const ClaimReply next = verbs().claim(lock);
  ASSERT_TRUE(std::holds_alternative<Busy>(next));
  EXPECT_EQ(std::get<Busy>(next).run.id(), newer.run.id());
}

TEST_P(DeadLetterActions, SlicesCoverEveryMemberOnce) {
  const Uuid dead_letter = *fail_one("a").dead_letter;
  for (const char* key : {"b", "c", "d", "e"}) fail_one(key);
  DeadLetterActionRequest all = wish(dead_letter, RetryByHand{});
  all.limit = 2;
  int slices = 0, total = 0;
  do {
    const DeadLetterActionReply slice = moved(all);
    total += changed(slice);
    all.cursor = slice.next;
    ++slices;
  } while (!all.cursor.empty());
  EXPECT_EQ(total, 5);
  EXPECT_EQ(slices, 3);
}

TEST_P(DeadLetterActions, ForeignEntriesAreNotFound) {
  const Settled a = fail_one("a");
  DeadLetterActionRequest foreign = wish(*a.dead_letter, RetryByHand{});
  foreign.tenant = "globex";
  EXPECT_FALSE(store().act_on_dead_letter(foreign).value());
  EXPECT_FALSE(store().act_on_dead_letter(wish(id_of(99), RetryByHand{})).value());
  EXPECT_EQ(find(a.run.id()).status(), Status::failed);
}

TEST_P(DeadLetterActions, EntryIsPurgedWithItsLastRun) {
  const Settled a = fail_one("a");
  const Uuid dead_letter = *a.dead_letter;
  moved(wish(dead_letter, ResolveFailed{"n"}));
  advance(24h * 20);
  const Settled b = fail_one("b");
  ASSERT_EQ(b.dead_letter, dead_letter);
  advance(24h * 11);
  verbs().purge();
  EXPECT_FALSE(is_gone(a.run.id())) << "its dead letter is not acknowledged";
  store().acknowledge({}, dead_letter, "ada").value();
  verbs().purge();
  EXPECT_TRUE(is_gone(a.run.id()));
  EXPECT_FALSE(is_gone(b.run.id())) << "its retention is not over";
  ASSERT_EQ(members(dead_letter).size(), 1u);
  EXPECT_EQ(members(dead_letter)[0].run, b.run.id());
  EXPECT_TRUE(store().find_dead_letter({}, dead_letter).value());
  advance(24h * 20);
  verbs().purge();
  EXPECT_TRUE(is_gone(b.run.id()));
  EXPECT_TRUE(members(dead_letter).empty());
  EXPECT_FALSE(store().find_dead_letter({}, dead_letter).value());
  EXPECT_TRUE(store().list_dead_letters({.with_acknowledged = true}).value().entries.empty());
}

TEST_P(DeadLetterActions, InvalidCursorIsRefused) {
  for (const char* cursor : {"x", "-1", "1 ", "ffffffffffffffff", "1.2"}) {
    EXPECT_EQ(store().list_dead_letters({.cursor = cursor}).error().code, Code::INVALID_ARGUMENT) << cursor;
    EXPECT_EQ(store().list({.cursor = cursor}).error().code, Code::INVALID_ARGUMENT) << cursor;
  }
}

}  // namespace
}  // namespace latchkey
