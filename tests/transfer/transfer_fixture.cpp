#include "transfer/transfer_fixture.hpp"

namespace latchkey {
namespace {

const std::string kBytes("\0binary\xff\n", 9);

ClaimRequest claim_of(const std::string& key, Guard guard = Guard::once) {
  ClaimRequest request = a_claim(key);
  request.guard = guard;
  request.lease = std::chrono::minutes{10};
  request.input = kBytes;
  request.caller = "cron@host";
  return request;
}

EnqueueRequest job_of(const std::string& function, const std::string& tenant = "default") {
  EnqueueRequest request;
  request.tenant = tenant;
  request.function = function;
  request.lease = std::chrono::minutes{10};
  request.input = "{}";
  return request;
}

Settled settle(Store& store, const Won& won, Ending ending) {
  return as<Settled>(Verbs(store).settle({{}, won.run.id(), won.fence, std::move(ending)}));
}

Taken take(Store& store, const std::string& function, Uuid session) {
  auto taken = Verbs(store).take({{}, {function}, 1, session, std::chrono::minutes{10}});
  return taken.at(0);
}

}  // namespace

// Failed generations: one retried by hand, one resolved with a note. Also an acknowledged dead letter, and tokens.
void MoveTest::fill_dead_letters(Store& store) {
  Verbs verbs(store);
  Settled failed = settle(store, as<Won>(verbs.claim(claim_of("bad"))), permanent("no such file"));
  settle(store, as<Won>(verbs.claim(claim_of("bad-too"))), permanent(kBytes));
  ASSERT_TRUE(store
                  .act_on_dead_letter({.dead_letter = *failed.dead_letter,
                                       .runs = {failed.run.id()},
                                       .move = RetryByHand{true},
                                       .by = "ann",
                                       .note = kBytes})
                  .value());
  const Won again = as<Won>(verbs.claim(claim_of("bad")));
  ASSERT_EQ(again.run.generation, 2u);
  settle(store, again, permanent("again"));
  ClaimRequest other = claim_of("other");
  other.function = "g";
  other.key_hash = compute_key_hash("default", "g", "other");
  const Settled read = settle(store, as<Won>(verbs.claim(other)), permanent());
  ASSERT_TRUE(store.acknowledge({}, *read.dead_letter, "ben").value());
  ASSERT_TRUE(store.add_token({.id = "Zz00000000000000",
                               .secret_hash = sha256("s"),
                               .name = "ci",
                               .role = Role::service,
                               .tenants = {"acme", "default"},
                               .created_at = store.now(),
                               .expires_at = store.now() + std::chrono::hours{1}}));
  ASSERT_TRUE(store.add_token(
      {.id = "aa00000000000000", .secret_hash = sha256("t"), .role = Role::admin, .created_at = store.now()}));
  ASSERT_TRUE(store.revoke_token("aa00000000000000").value());
}

RunId MoveTest::fill_given_back(Store& store) {
  Verbs verbs(store);
  ClaimRequest lock = claim_of("given back", Guard::while_running);
  lock.retry.retries = 0;
  const Settled older = settle(store, as<Won>(verbs.claim(lock)), permanent());
  const Settled newer = settle(store, as<Won>(verbs.claim(lock)), Complete{});
  EXPECT_NE(older.run.id(), newer.run.id());
  as<Moved>(verbs.move({{}, older.run.id(), RetryByHand{}}));
  return older.run.id();
}

void MoveTest::fill_many(Store& store, int many) {
  Verbs verbs(store);
  constexpr int kBatch = 500;
  for (int done = 0; done < many; done += kBatch) {
    std::vector<EnqueueRequest> jobs;
    for (int i = done; i < std::min(many, done + kBatch); ++i) {
      jobs.push_back(job_of("many", i % 3 == 0 ? "acme" : "default"));
      jobs.back().input = std::to_string(i);
      if (i % 2 == 0) continue;
      jobs.back().key = "many" + std::to_string(i);
      jobs.back().guard = Guard::once;
      jobs.back().key_hash = compute_key_hash(jobs.back().tenant, "many", jobs.back().key);
    }
    verbs.enqueue_all(std::move(jobs));
    const auto taken = verbs.take({{}, {"many"}, kBatch / 2, some_id(), {}});
    std::vector<SettleRequest> ends;
    for (const Taken& one : taken)
      ends.push_back({{}, one.run.id(), one.fence, Complete{"done " + one.run.head->input, {}}});
    verbs.settle_all(std::move(ends));
  }
}

Filled MoveTest::fill(int many) {
  Filled filled;
  auto opened = open_file();
  if (!opened) throw std::runtime_error(to_string(opened.error()));
  Store& store = **opened;
  Verbs verbs(store);
  fill_many(store, many);
  filled.lock = as<Won>(verbs.claim(claim_of("lock", Guard::while_running)));
  const Settled done = settle(store, as<Won>(verbs.claim(claim_of("done"))), Complete{kBytes, {}});
  filled.done = done.run.id();
  const Instant now = store.now();
  verbs.note({filled.done, {{{"replay", 3, now, now}}, {{now, "replay", "cron@host"}}}});
  // Two runs of one key: the key points to the later one only.
  settle(store, as<Won>(verbs.claim(claim_of("turns", Guard::while_running))), Complete{"1", {}});
  settle(store, as<Won>(verbs.claim(claim_of("turns", Guard::while_running))), Complete{"2", {}});
  ClaimRequest careful = claim_of("doubt");
  careful.on_doubt = OnDoubt::hold;
  careful.fingerprint = sha256("request");
  filled.doubt = as<Won>(verbs.claim(careful));
  settle(store, filled.doubt, outcome_unknown());
  ClaimRequest patient = claim_of("between tries");
  patient.retry = {.retries = 2, .jitter = Jitter::percent, .jitter_percent = 7, .schedule = {std::chrono::hours{1}}};
  settle(store, as<Won>(verbs.claim(patient)), retryable("later"));
  fill_dead_letters(store);
  filled.given_back = fill_given_back(store);

  as<Enqueued>(verbs.enqueue(job_of("first", "acme")));
  filled.first = take(store, "first", some_id());
  EnqueueRequest second = job_of("second", "acme");
  second.after = {filled.first.run.id()};
  filled.dependent = as<Enqueued>(verbs.enqueue(second)).run.id();
  as<Enqueued>(verbs.enqueue(job_of("taken", "acme")));
  filled.taken = take(store, "taken", some_id());
  EnqueueRequest later = job_of("later");
  later.delay = std::chrono::hours{1};
  later.priority = -7;
  later.claim = filled.call = some_id();
  filled.called = as<Enqueued>(verbs.enqueue(later)).run.id();
  const RunId unwanted = as<Enqueued>(verbs.enqueue(job_of("unwanted"))).run.id();
  as<Moved>(verbs.move({{}, unwanted, CancelByHand{}}));
  filled.fence = static_cast<std::uint64_t>(filled.taken.fence);
  filled.counter = uuid_counter(unwanted);
  return filled;
}

}  // namespace latchkey
