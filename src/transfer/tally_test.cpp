// What a verification is worth: nothing of what a store holds can differ without another hash.
#include "transfer/tally.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace latchkey::transfer {
namespace {

using namespace std::chrono_literals;

Uuid id_of(std::uint64_t counter) { return make_uuid_v7(from_ms(1'000), counter, 7); }

struct Held {
  RunHead head;
  struct Run run;
  MovedRun moved;
  Wait wait;
  DeadLetter letter;
  DeadLetterMember member;
  TokenRecord token;
  CatalogRecord record;
  AuditEntry entry;
};

Held make_held() {
  Held held;
  held.head.id = id_of(1);
  held.head.key = "k";
  held.head.guard = Guard::once;
  held.run.state = Queued{from_ms(5)};
  held.member.steps = {{}};
  return held;
}

Summary summary_of(Held held) {
  held.run.head = std::make_shared<RunHead>(std::move(held.head));
  held.moved.run = std::move(held.run);
  Tally tally;
  tally.add_run(held.moved);
  tally.add_wait(held.wait);
  tally.add_letter(held.letter);
  tally.add_member(held.member, held.letter);
  tally.add_token(held.token);
  tally.add_record(held.record);
  tally.add_audit(held.entry);
  return tally.finish();
}

// One change each, of every field that there is.
const std::vector<std::function<void(Held&)>>& changes() {
  static const std::vector<std::function<void(Held&)>> all{
      [](Held& h) { h.head.id = id_of(2); },
      [](Held& h) { h.head.tenant = "t"; },
      [](Held& h) { h.head.function = "f"; },
      [](Held& h) { h.head.key = "l"; },
      [](Held& h) { h.head.key_hash[15] = 1; },
      [](Held& h) { h.head.guard = Guard::while_running; },
      [](Held& h) { h.head.made_by = MadeBy::latchkey; },
      [](Held& h) { h.head.on_doubt = OnDoubt::hold; },
      [](Held& h) { h.head.on_failed = OnFailed::fail; },
      [](Held& h) { h.head.priority = -1; },
      [](Held& h) { h.head.fingerprint.emplace(); },
      [](Held& h) { h.head.fingerprint.emplace()[31] = 1; },
      [](Held& h) { h.head.retry.retries = 9; },
      [](Held& h) { h.head.retry.first = 2s; },
      [](Held& h) { h.head.retry.factor = 2; },
      [](Held& h) { h.head.retry.ceiling = 31s; },
      [](Held& h) { h.head.retry.total = 1h; },
      [](Held& h) { h.head.retry.jitter = Jitter::full; },
      [](Held& h) { h.head.retry.jitter_percent = 11; },
      [](Held& h) { h.head.retry.schedule = {1s}; },
      [](Held& h) { h.head.window = 1h; },
      [](Held& h) { h.head.lease = 1h; },
      [](Held& h) { h.head.created_at = from_ms(1); },
      [](Held& h) { h.head.input = "i"; },
      [](Held& h) { h.head.caller = "i"; },
      [](Held& h) { h.head.claim = id_of(3); },
      [](Held& h) { h.head.by_call = true; },
      [](Held& h) { h.run.origin = Origin::enqueued; },
      [](Held& h) { h.run.generation = 2; },
      [](Held& h) { h.run.attempt = 1; },
      [](Held& h) { h.run.attempts_max = 2; },
      [](Held& h) { h.run.failures = 1; },
      [](Held& h) { h.run.attempts_total = 1; },
      [](Held& h) { h.run.fence = Fence{1}; },
      [](Held& h) { h.run.first_attempt_at = from_ms(1); },
      [](Held& h) { h.run.waiting_for = 1; },
      [](Held& h) { h.run.last_error = "x"; },
      [](Held& h) { h.run.last_error_code = "x"; },
      [](Held& h) { h.run.opened_by = id_of(3); },
      [](Held& h) { h.run.effect_key = id_of(3); },
      [](Held& h) { h.run.state = Queued{from_ms(6)}; },
      [](Held& h) { h.run.state = Queued{from_ms(5), QueuedBy::release}; },
      [](Held& h) { h.run.state = InDoubt{from_ms(5)}; },
      [](Held& h) { h.run.state = Running{.started_at = from_ms(5)}; },
      [](Held& h) { h.run.state = Running{.started_at = from_ms(5), .lease_until = from_ms(9)}; },
      [](Held& h) { h.run.state = Running{.started_at = from_ms(5), .claim = id_of(3)}; },
      [](Held& h) { h.run.state = Running{.started_at = from_ms(5), .session = id_of(3)}; },
      [](Held& h) { h.run.state = Running{.started_at = from_ms(5), .lease = 1s}; },
      [](Held& h) { h.run.state = Running{.started_at = from_ms(5), .cancel_requested = true}; },
      [](Held& h) { h.run.state = Completed{from_ms(5), ""}; },
      [](Held& h) { h.run.state = Completed{from_ms(5), std::string(1, '\0')}; },
      [](Held& h) { h.run.state = Failed{from_ms(5), ""}; },
      [](Held& h) { h.run.state = Failed{from_ms(5), "x"}; },
      [](Held& h) { h.run.state = Failed{from_ms(5), "", Effect::unknown}; },
      [](Held& h) { h.run.state = Cancelled{from_ms(5), ""}; },
      [](Held& h) { h.run.state = Cancelled{from_ms(5), "x"}; },
      [](Held& h) { h.moved.has_key = true; },
      [](Held& h) { h.moved.duplicates.emplace(); },
      [](Held& h) { h.moved.duplicates = Duplicates{{{"replay", 1, {}, {}}}, {}}; },
      [](Held& h) { h.wait.predecessor = 1; },
      [](Held& h) { h.wait.dependent = 1; },
      [](Held& h) { h.wait.run = id_of(3); },
      [](Held& h) { h.letter.id = id_of(3); },
      [](Held& h) { h.letter.tenant = "x"; },
      [](Held& h) { h.letter.function = "x"; },
      [](Held& h) { h.letter.code = "x"; },
      [](Held& h) { h.letter.reason = "x"; },
      [](Held& h) { h.letter.latest_run = id_of(3); },
      [](Held& h) { h.letter.count = 1; },
      [](Held& h) { h.letter.opened_at = from_ms(1); },
      [](Held& h) { h.letter.updated_at = from_ms(1); },
      [](Held& h) { h.letter.acknowledged_at = from_ms(0); },
      [](Held& h) { h.letter.acknowledged_by = "x"; },
      [](Held& h) { h.member.run = id_of(3); },
      [](Held& h) { h.member.generation = 1; },
      [](Held& h) { h.member.key = "x"; },
      [](Held& h) { h.member.code = "x"; },
      [](Held& h) { h.member.reason = "x"; },
      [](Held& h) { h.member.attempts = 1; },
      [](Held& h) { h.member.effect = Effect::unknown; },
      [](Held& h) { h.member.at = from_ms(1); },
      [](Held& h) { h.member.steps.clear(); },
      [](Held& h) { h.member.steps[0].kind = StepKind::failed; },
      [](Held& h) { h.member.steps[0].by = "x"; },
      [](Held& h) { h.member.steps[0].at = from_ms(1); },
      [](Held& h) { h.member.steps[0].note = "x"; },
      [](Held& h) { h.token.id = "x"; },
      [](Held& h) { h.token.secret_hash[0] = 1; },
      [](Held& h) { h.token.name = "x"; },
      [](Held& h) { h.token.role = Role::admin; },
      [](Held& h) { h.token.tenants = {"x"}; },
      [](Held& h) { h.token.created_at = from_ms(1); },
      [](Held& h) { h.token.expires_at = from_ms(0); },
      [](Held& h) { h.token.revoked_at = from_ms(0); },
      [](Held& h) { h.record.id.kind = RecordKind::schedule; },
      [](Held& h) { h.record.id.tenant = "x"; },
      [](Held& h) { h.record.id.name = "x"; },
      [](Held& h) { h.record.version = 2; },
      [](Held& h) { h.record.change = 1; },
      [](Held& h) { h.record.source = RecordSource::config; },
      [](Held& h) { h.record.body = "x"; },
      [](Held& h) { h.record.is_retired = true; },
      [](Held& h) { h.record.is_deleted = true; },
      [](Held& h) { h.record.updated_at = from_ms(1); },
      [](Held& h) { h.record.updated_by = "x"; },
      [](Held& h) { h.entry.id = id_of(3); },
      [](Held& h) { h.entry.at = from_ms(1); },
      [](Held& h) { h.entry.actor = "x"; },
      [](Held& h) { h.entry.action = "x"; },
      [](Held& h) { h.entry.subject_kind = "x"; },
      [](Held& h) { h.entry.subject = "x"; },
      [](Held& h) { h.entry.tenant = "x"; },
      [](Held& h) { h.entry.before = "x"; },
      [](Held& h) { h.entry.after = "x"; },
  };
  return all;
}

TEST(Tally, EveryFieldChangesTheHash) {
  std::vector<Summary> seen{summary_of(make_held())};
  for (std::size_t i = 0; i < changes().size(); ++i) {
    Held held = make_held();
    changes()[i](held);
    const Summary summary = summary_of(std::move(held));
    for (const Summary& other : seen) EXPECT_NE(summary.hash, other.hash) << "change " << i;
    EXPECT_NE(describe_difference(seen.front(), summary), "") << "change " << i;
    seen.push_back(summary);
  }
}

TEST(Tally, TheSameHasTheSameHash) {
  EXPECT_EQ(summary_of(make_held()), summary_of(make_held()));
  EXPECT_EQ(describe_difference(summary_of(make_held()), summary_of(make_held())), "");
}

// Every store finds a run by the first half of its hash, and some know no more of it.
TEST(Tally, HalfOfAKeysHashIsEnough) {
  Held held = make_held();
  held.head.key_hash[16] = 1;
  EXPECT_EQ(summary_of(std::move(held)), summary_of(make_held()));
}

}  // namespace
}  // namespace latchkey::transfer
