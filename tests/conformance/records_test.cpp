// Rare data: dead letters, tokens, suppressed duplicates. Also: bytes are stored unchanged.
#include "base/random.hpp"
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class DeadLetters : public StoreTest {
 protected:
  Settled fail_one(std::string key, std::string message, std::string function = "f") {
    ClaimRequest request = a_claim(key);
    request.function = function;
    request.key_hash = hash_key("default", function, key);
    return end(win(request), permanent(message));
  }
  std::vector<DeadLetter> dead_letters(DeadLetterQuery query = {}) {
    return store().list_dead_letters(query).value().entries;
  }
};
LK_CONFORMANCE(DeadLetters);

TEST_P(DeadLetters, FailuresOfAFunctionAreOneEntry) {
  const Settled first = fail_one("a", "one");
  advance(1s);
  const Settled second = fail_one("b", "two");
  EXPECT_EQ(first.dead_letter, second.dead_letter);
  ASSERT_EQ(dead_letters().size(), 1u);
  const DeadLetter entry = dead_letters()[0];
  EXPECT_EQ(entry.id, first.dead_letter);
  EXPECT_EQ(entry.count, 2u);
  EXPECT_EQ(entry.reason, "two");
  EXPECT_EQ(entry.code, "EXECUTION_ERROR");
  EXPECT_EQ(entry.latest_run, second.run.id());
  EXPECT_EQ(entry.opened_at, now() - 1s);
  EXPECT_EQ(entry.updated_at, now());
  const auto members = store().list_members(entry.id, 10).value();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].run, first.run.id());
  EXPECT_EQ(members[0].key, "a");
  EXPECT_EQ(members[0].reason, "one");
  EXPECT_EQ(members[0].attempts, 1u);
  EXPECT_EQ(members[0].effect, Effect::none);
  EXPECT_EQ(store().list_members(entry.id, 1).value().size(), 1u);
}

TEST_P(DeadLetters, EveryGenerationIsAMember) {
  fail_one("a", "one");
  const Settled second = fail_one("a", "two");
  EXPECT_EQ(second.run.generation, 2u);
  EXPECT_EQ(store().list_members(*second.dead_letter, 10).value().size(), 2u);
}

TEST_P(DeadLetters, FailureAfterAcknowledgeOpensANewEntry) {
  const Settled first = fail_one("a", "one");
  const auto read = store().acknowledge({}, *first.dead_letter, "ada").value();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->acknowledged_by, "ada");
  EXPECT_EQ(read->acknowledged_at, now());
  advance(1s);
  const auto again = store().acknowledge({}, *first.dead_letter, "bob").value();
  EXPECT_EQ(again->acknowledged_by, "ada") << "the first acknowledgement is stored";
  EXPECT_EQ(again->acknowledged_at, now() - 1s);
  EXPECT_TRUE(dead_letters().empty());
  const Settled second = fail_one("b", "two");
  EXPECT_NE(second.dead_letter, first.dead_letter);
  ASSERT_EQ(dead_letters().size(), 1u);
  EXPECT_EQ(dead_letters()[0].count, 1u);
  EXPECT_EQ(dead_letters({.with_acknowledged = true}).size(), 2u);
  EXPECT_FALSE(store().acknowledge({}, id_of(99), "ada").value());
}

TEST_P(DeadLetters, ListedLatestFirstInPages) {
  for (const char* function : {"f1", "f2", "f3"}) fail_one("a", "x", function);
  const auto page = store().list_dead_letters({.limit = 2}).value();
  ASSERT_EQ(page.entries.size(), 2u);
  EXPECT_EQ(page.entries[0].function, "f3");
  const auto rest = store().list_dead_letters({.cursor = page.next, .limit = 2}).value();
  ASSERT_EQ(rest.entries.size(), 1u);
  EXPECT_EQ(rest.entries[0].function, "f1");
  EXPECT_TRUE(rest.next.empty());
  EXPECT_EQ(dead_letters({.function = "f2"}).size(), 1u);
  EXPECT_TRUE(dead_letters({.limit = 0}).empty());
}

TEST_P(DeadLetters, SurviveReopening) {
  const Settled failed = fail_one("a", "one");
  opened().reopen();
  EXPECT_EQ(dead_letters().size(), opened().is_durable() ? 1u : 0u);
  if (opened().is_durable()) EXPECT_EQ(fail_one("b", "two").dead_letter, failed.dead_letter);
}

class Tokens : public StoreTest {};
LK_CONFORMANCE(Tokens);

TEST_P(Tokens, AreStoredAndRevokedOnce) {
  const TokenRecord token{.id = "0123456789abcdef",
                          .secret_hash = sha256("secret"),
                          .name = "ci",
                          .role = Role::org_admin,
                          .tenants = {"acme", "globex"},
                          .created_at = now(),
                          .expires_at = now() + 1h};
  ASSERT_TRUE(store().add_token(token));
  auto found = store().list_tokens().value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, token.id);
  EXPECT_EQ(found[0].secret_hash, token.secret_hash);
  EXPECT_EQ(found[0].name, "ci");
  EXPECT_EQ(found[0].role, Role::org_admin);
  EXPECT_EQ(found[0].tenants, token.tenants);
  EXPECT_EQ(found[0].created_at, token.created_at);
  EXPECT_EQ(found[0].expires_at, token.expires_at);
  EXPECT_FALSE(found[0].revoked_at);
  EXPECT_TRUE(store().revoke_token(token.id).value());
  advance(1s);
  EXPECT_TRUE(store().revoke_token(token.id).value());
  EXPECT_EQ(store().list_tokens().value()[0].revoked_at, now() - 1s);
  EXPECT_FALSE(store().revoke_token("unknown").value());
  opened().reopen();
  EXPECT_EQ(store().list_tokens().value().size(), opened().is_durable() ? 1u : 0u);
}

class Counted : public StoreTest {
 protected:
  StoreStats stats() { return store().stats().value(); }
};
LK_CONFORMANCE(Counted);

TEST_P(Counted, OpenRunsDoubtsAndUnacknowledged) {
  EXPECT_EQ(stats(), StoreStats{});
  ClaimRequest held = a_claim("held");
  held.on_doubt = OnDoubt::hold;
  const Won first = win(held);
  const Won done = win(a_claim("done")), failed = win(a_claim("failed"));
  add(a_job("job"));
  EXPECT_EQ(stats(), (StoreStats{.queued = 1, .running = 3}));
  end(done);
  end(failed, permanent());
  end(first, outcome_unknown());
  const Instant since = now();
  advance(1s);
  held.key = "later";
  held.key_hash = hash_key("default", "f", "later");
  const Won second = win(held);
  end(second, outcome_unknown());
  const StoreStats seen{.queued = 1, .in_doubt = 2, .doubt_since = since, .unacknowledged_dead_letters = 1};
  EXPECT_EQ(stats(), seen);
  opened().reopen();
  EXPECT_EQ(stats(), opened().is_durable() ? seen : StoreStats{});
  if (!opened().is_durable()) return;
  move(first.run.id(), ResolveCompleted{});
  EXPECT_EQ(stats().in_doubt, 1u);
  EXPECT_EQ(stats().doubt_since, since + 1s);
  move(second.run.id(), CancelByHand{});
  store().acknowledge({}, store().list_dead_letters({}).value().entries.at(0).id, "me").value();
  EXPECT_EQ(stats(), StoreStats{.queued = 1});
}

class Suppressed : public StoreTest {};
LK_CONFORMANCE(Suppressed);

TEST_P(Suppressed, CountsAreAddedAndPurgedWithTheRun) {
  const Won won = win();
  EXPECT_FALSE(store().find_duplicates(won.run.id()).value());
  for (int i = 0; i < 20; ++i)
    verbs().note({won.run.id(),
                  {.counts = {{"REPLAYED", 2, now(), now()}}, .latest = {{now(), "REPLAYED", std::to_string(i)}}}});
  verbs().note({id_of(99), {.counts = {{"REPLAYED", 1, now(), now()}}}});  // an unknown run is skipped
  const auto seen = store().find_duplicates(won.run.id()).value();
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->counts.size(), 1u);
  EXPECT_EQ(seen->counts[0].count, 40u);
  ASSERT_EQ(seen->latest.size(), kLatestDuplicates);
  EXPECT_EQ(seen->latest.back().caller, "19");
  EXPECT_FALSE(store().find_duplicates(id_of(99)).value());
  end(won);
  advance(24h * 8);
  verbs().purge();
  EXPECT_FALSE(store().find_duplicates(won.run.id()).value());
}

class StoredBytes : public StoreTest {};
LK_CONFORMANCE(StoredBytes);

TEST_P(StoredBytes, AreReturnedUnchanged) {
  std::string large(1 << 20, '\0');
  SeededRandom random(3);
  for (char& c : large) c = static_cast<char>(random.next());
  int number = 0;
  for (const std::string& bytes : {std::string(), std::string("\0a\0", 3), std::string("\xff\xfe\xc3"), large}) {
    ClaimRequest request = a_claim("bytes" + std::to_string(number++));
    request.input = bytes;
    const Won won = win(request);
    EXPECT_TRUE(find(won.run.id()).head->input == bytes);
    end(won, Complete{bytes, {}});
    for (int i = 0; i < 2; ++i) {
      const ClaimReply reply = verbs().claim(request);
      EXPECT_TRUE(std::get<Replay>(reply).run.as<Completed>()->result == bytes) << "replays are byte-equal";
    }
    opened().reopen();
    const auto stored = store().find({}, won.run.id()).value();
    ASSERT_EQ(stored.has_value(), opened().is_durable());
    if (stored) EXPECT_TRUE(stored->as<Completed>()->result == bytes && stored->head->input == bytes);
  }
}

TEST_P(StoredBytes, KeysAndMessagesMayHaveAnyBytes) {
  const std::string odd("k\0'\"\n\xff;--", 10);
  const Won won = win(a_claim(odd));
  end(won, retryable(odd));
  const Run run = find(won.run.id());
  EXPECT_EQ(run.head->key, odd);
  EXPECT_EQ(run.last_error, odd);
  EXPECT_EQ(run.last_error_code, "E_TRY");
  EXPECT_EQ(store().list({.key = odd}).value().runs.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<NotDue>(verbs().claim(a_claim(odd))));
}

TEST_P(StoredBytes, RetryPoliciesAreReturnedUnchanged) {
  const std::vector<RetryPolicy> policies{
      kDefaultRetries,
      kNoRetries,
      {.retries = 7, .first = 2s, .factor = 2, .ceiling = 1min, .total = 1h, .jitter = Jitter::decorrelated},
      {.jitter = Jitter::percent, .jitter_percent = 25},
      {.retries = 3, .jitter = Jitter::equal, .schedule = {5s, 5min, 24h}}};
  std::vector<RunId> ids;
  for (const RetryPolicy& policy : policies) {
    ClaimRequest request = a_claim("policy" + std::to_string(ids.size()));
    request.retry = policy;
    ids.push_back(win(request).run.id());
  }
  opened().reopen();
  for (std::size_t i = 0; i < ids.size() && opened().is_durable(); ++i)
    EXPECT_EQ(find(ids[i]).head->retry, policies[i]) << i;
}

TEST_P(StoredBytes, EveryMemberSurvivesReopening) {
  std::vector<Run> before;
  const auto note = [&](RunId id) { before.push_back(find(id)); };
  ClaimRequest held = a_claim("held");
  held.on_doubt = OnDoubt::hold;
  const Won doubted = win(held), cancelling = win(a_claim("cancelling")), failed = win(a_claim("failed")),
            waiting = win(a_claim("waiting")), completed = win(a_claim("completed"));
  end(doubted, outcome_unknown());
  move(cancelling.run.id(), CancelByHand{});
  end(failed, permanent());
  move(failed.run.id(), RetryByHand{.fresh_effect_key = true});
  end(waiting, outcome_unknown());
  end(completed);
  EnqueueRequest job = a_job("job");
  job.after = {doubted.run.id()};
  job.priority = -7;
  job.on_failed = OnFailed::skip;
  note(add(job).id());
  for (const Won& won : {doubted, cancelling, failed, waiting, completed}) note(won.run.id());
  opened().reopen();
  for (const Run& run : before) {
    if (!opened().is_durable()) {
      EXPECT_TRUE(is_gone(run.id()));
      continue;
    }
    const Run after = find(run.id());
    EXPECT_TRUE(same_run(run, after)) << run.head->key;
    EXPECT_EQ(after.head->priority, run.head->priority);
    EXPECT_EQ(after.head->on_failed, run.head->on_failed);
    EXPECT_EQ(after.head->on_doubt, run.head->on_doubt);
    EXPECT_EQ(after.head->retry, run.head->retry);
    EXPECT_EQ(after.head->fingerprint, run.head->fingerprint);
    EXPECT_EQ(after.head->created_at, run.head->created_at);
  }
}

}  // namespace
}  // namespace latchkey
