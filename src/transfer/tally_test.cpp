// The tally as a verification: every difference in the content of a store changes the hash.
#include "transfer/tally.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace latchkey::transfer {
namespace {

using namespace std::chrono_literals;

Uuid id_of(std::uint64_t counter) { return make_uuid_v7(from_ms(1'000), counter, 7); }

struct Content {
  RunHead head;
  struct Run run;
  TransferredRun moved;
  Wait wait;
  DeadLetter dead_letter;
  DeadLetterMember member;
  TokenRecord token;
};

Content make_content() {
  Content content;
  content.head.id = id_of(1);
  content.head.key = "k";
  content.head.guard = Guard::once;
  content.run.state = Queued{from_ms(5)};
  content.member.steps = {{}};
  return content;
}

Summary summary_of(Content content) {
  content.run.head = std::make_shared<RunHead>(std::move(content.head));
  content.moved.run = std::move(content.run);
  Tally tally;
  tally.add_run(content.moved);
  tally.add_wait(content.wait);
  tally.add_dead_letter(content.dead_letter);
  tally.add_member(content.member, content.dead_letter);
  tally.add_token(content.token);
  return tally.finish();
}

// One change of each field.
const std::vector<std::function<void(Content&)>>& changes() {
  static const std::vector<std::function<void(Content&)>> all{
      [](Content& h) { h.head.id = id_of(2); },
      [](Content& h) { h.head.tenant = "t"; },
      [](Content& h) { h.head.function = "f"; },
      [](Content& h) { h.head.key = "l"; },
      [](Content& h) { h.head.key_hash[15] = 1; },
      [](Content& h) { h.head.guard = Guard::while_running; },
      [](Content& h) { h.head.made_by = MadeBy::latchkey; },
      [](Content& h) { h.head.on_doubt = OnDoubt::hold; },
      [](Content& h) { h.head.on_failed = OnFailed::fail; },
      [](Content& h) { h.head.priority = -1; },
      [](Content& h) { h.head.fingerprint.emplace(); },
      [](Content& h) { h.head.fingerprint.emplace()[31] = 1; },
      [](Content& h) { h.head.retry.retries = 9; },
      [](Content& h) { h.head.retry.first = 2s; },
      [](Content& h) { h.head.retry.factor = 2; },
      [](Content& h) { h.head.retry.ceiling = 31s; },
      [](Content& h) { h.head.retry.total = 1h; },
      [](Content& h) { h.head.retry.jitter = Jitter::full; },
      [](Content& h) { h.head.retry.jitter_percent = 11; },
      [](Content& h) { h.head.retry.schedule = {1s}; },
      [](Content& h) { h.head.window = 1h; },
      [](Content& h) { h.head.lease = 1h; },
      [](Content& h) { h.head.created_at = from_ms(1); },
      [](Content& h) { h.head.input = "i"; },
      [](Content& h) { h.head.caller = "i"; },
      [](Content& h) { h.head.claim = id_of(3); },
      [](Content& h) { h.head.by_call = true; },
      [](Content& h) { h.run.origin = Origin::enqueued; },
      [](Content& h) { h.run.generation = 2; },
      [](Content& h) { h.run.attempt = 1; },
      [](Content& h) { h.run.attempts_max = 2; },
      [](Content& h) { h.run.failures = 1; },
      [](Content& h) { h.run.attempts_total = 1; },
      [](Content& h) { h.run.fence = Fence{1}; },
      [](Content& h) { h.run.first_attempt_at = from_ms(1); },
      [](Content& h) { h.run.waiting_for = 1; },
      [](Content& h) { h.run.last_error = "x"; },
      [](Content& h) { h.run.last_error_code = "x"; },
      [](Content& h) { h.run.opened_by = id_of(3); },
      [](Content& h) { h.run.effect_key = id_of(3); },
      [](Content& h) { h.run.state = Queued{from_ms(6)}; },
      [](Content& h) {
        h.run.state = Queued{from_ms(5), QueuedBy::release};
      },
      [](Content& h) { h.run.state = InDoubt{from_ms(5)}; },
      [](Content& h) { h.run.state = Running{.started_at = from_ms(5)}; },
      [](Content& h) { h.run.state = Running{.started_at = from_ms(5), .lease_until = from_ms(9)}; },
      [](Content& h) { h.run.state = Running{.started_at = from_ms(5), .claim = id_of(3)}; },
      [](Content& h) { h.run.state = Running{.started_at = from_ms(5), .session = id_of(3)}; },
      [](Content& h) { h.run.state = Running{.started_at = from_ms(5), .lease = 1s}; },
      [](Content& h) { h.run.state = Running{.started_at = from_ms(5), .cancel_requested = true}; },
      [](Content& h) {
        h.run.state = Completed{from_ms(5), ""};
      },
      [](Content& h) {
        h.run.state = Completed{from_ms(5), std::string(1, '\0')};
      },
      [](Content& h) {
        h.run.state = Failed{from_ms(5), ""};
      },
      [](Content& h) {
        h.run.state = Failed{from_ms(5), "x"};
      },
      [](Content& h) {
        h.run.state = Failed{from_ms(5), "", Effect::unknown};
      },
      [](Content& h) {
        h.run.state = Cancelled{from_ms(5), ""};
      },
      [](Content& h) {
        h.run.state = Cancelled{from_ms(5), "x"};
      },
      [](Content& h) { h.moved.has_key = true; },
      [](Content& h) { h.moved.duplicates.emplace(); },
      [](Content& h) {
        h.moved.duplicates = Duplicates{{{"replay", 1, {}, {}}}, {}};
      },
      [](Content& h) { h.wait.predecessor = 1; },
      [](Content& h) { h.wait.dependent = 1; },
      [](Content& h) { h.wait.run = id_of(3); },
      [](Content& h) { h.dead_letter.id = id_of(3); },
      [](Content& h) { h.dead_letter.tenant = "x"; },
      [](Content& h) { h.dead_letter.function = "x"; },
      [](Content& h) { h.dead_letter.code = "x"; },
      [](Content& h) { h.dead_letter.reason = "x"; },
      [](Content& h) { h.dead_letter.latest_run = id_of(3); },
      [](Content& h) { h.dead_letter.count = 1; },
      [](Content& h) { h.dead_letter.opened_at = from_ms(1); },
      [](Content& h) { h.dead_letter.updated_at = from_ms(1); },
      [](Content& h) { h.dead_letter.acknowledged_at = from_ms(0); },
      [](Content& h) { h.dead_letter.acknowledged_by = "x"; },
      [](Content& h) { h.member.run = id_of(3); },
      [](Content& h) { h.member.generation = 1; },
      [](Content& h) { h.member.key = "x"; },
      [](Content& h) { h.member.code = "x"; },
      [](Content& h) { h.member.reason = "x"; },
      [](Content& h) { h.member.attempts = 1; },
      [](Content& h) { h.member.effect = Effect::unknown; },
      [](Content& h) { h.member.at = from_ms(1); },
      [](Content& h) { h.member.steps.clear(); },
      [](Content& h) { h.member.steps[0].kind = StepKind::failed; },
      [](Content& h) { h.member.steps[0].by = "x"; },
      [](Content& h) { h.member.steps[0].at = from_ms(1); },
      [](Content& h) { h.member.steps[0].note = "x"; },
      [](Content& h) { h.token.id = "x"; },
      [](Content& h) { h.token.secret_hash[0] = 1; },
      [](Content& h) { h.token.name = "x"; },
      [](Content& h) { h.token.role = Role::admin; },
      [](Content& h) { h.token.tenants = {"x"}; },
      [](Content& h) { h.token.created_at = from_ms(1); },
      [](Content& h) { h.token.expires_at = from_ms(0); },
      [](Content& h) { h.token.revoked_at = from_ms(0); },
  };
  return all;
}

TEST(Tally, EveryFieldChangesTheHash) {
  std::vector<Summary> seen{summary_of(make_content())};
  for (std::size_t i = 0; i < changes().size(); ++i) {
    Content content = make_content();
    changes()[i](content);
    const Summary summary = summary_of(std::move(content));
    for (const Summary& other : seen) EXPECT_NE(summary.hash, other.hash) << "change " << i;
    EXPECT_NE(describe_difference(seen.front(), summary), "") << "change " << i;
    seen.push_back(summary);
  }
}

TEST(Tally, EqualContentHasTheSameHash) {
  EXPECT_EQ(summary_of(make_content()), summary_of(make_content()));
  EXPECT_EQ(describe_difference(summary_of(make_content()), summary_of(make_content())), "");
}

// Every store finds a run by the first half of its hash, and some stores have only that half.
TEST(Tally, OnlyHalfOfAKeysHashCounts) {
  Content content = make_content();
  content.head.key_hash[16] = 1;
  EXPECT_EQ(summary_of(std::move(content)), summary_of(make_content()));
}

}  // namespace
}  // namespace latchkey::transfer
