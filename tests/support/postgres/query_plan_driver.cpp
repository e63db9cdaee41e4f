#include "support/postgres/query_plan_driver.hpp"

#include <future>

#include "support/sample_runs.hpp"

namespace latchkey {

using namespace std::chrono_literals;

namespace {

constexpr int kBatch = 500;
constexpr int kFew = 20;

MoveReply move_run(Store& store, RunId id, const Move& move) {
  return await<MoveReply>([&](auto done) { store.move({{}, id, move}, std::move(done)); });
}
Swept sweep_all(Store& store) {
  return await<Swept>([&](auto done) { store.sweep(kBatch, std::move(done)); });
}
Swept purge_all(Store& store, Retention retention) {
  return await<Swept>([&](auto done) { store.purge(retention, kBatch, std::move(done)); });
}

}  // namespace

void QueryPlanDriver::run() {
  enqueue_and_claim();
  take_and_settle();
  retry();
  chain();
  fail_runs();
  sweep();
  run_beside_locks();
  read();
  purge();
}

void QueryPlanDriver::enqueue_and_claim() {
  announce_("enqueue without keys", kBatch);
  enqueue_jobs(store_, jobs_of("walk", kBatch));
  announce_("enqueue with keys", kBatch);
  enqueue_jobs(store_, jobs_of("keyed", kBatch, "k"));
  announce_("enqueue with keys of open runs", kBatch);
  enqueue_jobs(store_, jobs_of("keyed", kBatch, "k"));
  announce_("enqueue with keys of finished runs", kBatch);
  enqueue_jobs(store_, jobs_of("done", kBatch, "10000.0/"));
  announce_("enqueue one with a key", 1);
  const Run one = enqueue_jobs(store_, jobs_of("keyed", 1, "one")).front();
  announce_("cancel one", 1);
  move_run(store_, one.id(), CancelByHand{});
  announce_("enqueue with the key of a cancelled run", 1);
  enqueue_jobs(store_, jobs_of("keyed", 1, "one"));
  for (const char* name : {"claim", "claim of a running key"}) {
    announce_(name, 1);
    const auto reply = await<ClaimReply>([&](auto done) { store_.claim(a_claim("a claim"), std::move(done)); });
    const auto* won = std::get_if<Won>(&reply);
    if (!won) continue;
    announce_("extend a claim", 1);
    await<std::vector<ExtendReply>>([&](auto done) {
      store_.extend({{.tenant = {}, .id = won->run.id(), .fence = won->fence, .lease = {}}}, std::move(done));
    });
  }
}

void QueryPlanDriver::take_and_settle() {
  announce_("take", kBatch);
  auto taken = take_jobs(store_, {"walk"}, kBatch);
  ASSERT_EQ(taken.size(), std::size_t{kBatch});
  announce_("extend", kBatch);
  std::vector<ExtendRequest> extends;
  for (const Taken& one : taken) extends.push_back({{}, one.run.id(), one.fence, 2h});
  await<std::vector<ExtendReply>>([&](auto done) { store_.extend(extends, std::move(done)); });
  announce_("complete a part of a block", kFew);
  settle_jobs(store_, {taken.begin() + 100, taken.begin() + 100 + kFew}, Complete{"done", {}});
  announce_("complete one of a block", 1);
  settle_jobs(store_, {taken[200]}, Complete{"done", {}});
  announce_("complete it again", 1);
  settle_jobs(store_, {taken[200]}, Complete{"done", {}});
  announce_("complete the rest of a block", kBatch);
  taken.erase(taken.begin() + 200);
  taken.erase(taken.begin() + 100, taken.begin() + 100 + kFew);
  settle_jobs(store_, taken, Complete{"done", {}});
  prepare();
  enqueue_jobs(store_, jobs_of("walk", kBatch));
  announce_("take a part of a block", kFew);
  settle_jobs(store_, take_jobs(store_, {"walk"}, kFew), Complete{"done", {}});
  announce_("take and complete one", 1);
  settle_jobs(store_, take_jobs(store_, {"walk"}, 1), Complete{"done", {}});
  announce_("take a rest", kBatch);
  settle_jobs(store_, take_jobs(store_, {"walk"}, kBatch), Complete{"done", {}});
  prepare();
  enqueue_jobs(store_, single_jobs_of("single", "other", kBatch));
  for (const int count : {kBatch - kFew, kFew}) {
    announce_("take many blocks", count);
    taken = take_jobs(store_, {"single"}, count);
    EXPECT_EQ(taken.size(), static_cast<std::size_t>(count));
    announce_("complete many blocks", count);
    settle_jobs(store_, taken, Complete{"done", {}});
  }
  // Few jobs are due among many that are not, or that belong to another function or tenant.
  announce_("take where nothing is due yet", 1);
  EXPECT_TRUE(take_jobs(store_, {"work"}, 1).empty());
  announce_("take from several functions", kFew);
  const auto several = take_jobs(store_, {"busy", "work", "walk"}, kFew);
  announce_("take from one of many blocks", kFew);
  take_jobs(store_, {"busy"}, kFew);
  prepare();
  enqueue_jobs(store_, jobs_of("busy", kFew, "", "third"));
  announce_("take from one tenant", kFew);
  EXPECT_EQ(take_jobs(store_, {"busy"}, kFew, "third").size(), std::size_t{kFew});
}

void QueryPlanDriver::retry() {
  prepare();
  enqueue_jobs(store_, jobs_of("again", kBatch, "r"));
  auto taken = take_jobs(store_, {"again"}, kBatch);
  announce_("fail with a retry", kBatch);
  settle_jobs(store_, taken, Fail{.message = "m", .code = "E", .retry_after = 0ms});
  client_.execute("UPDATE latchkey.states SET at = 1 WHERE function = 'again'");
  announce_("take retries", kBatch);
  taken = take_jobs(store_, {"again"}, kBatch);
  ASSERT_EQ(taken.size(), std::size_t{kBatch});
  announce_("extend retries", kBatch);
  std::vector<ExtendRequest> extends;
  for (const Taken& one : taken) extends.push_back({{}, one.run.id(), one.fence, 2h});
  await<std::vector<ExtendReply>>([&](auto done) { store_.extend(extends, std::move(done)); });
  announce_("complete retries", kBatch);
  settle_jobs(store_, taken, Complete{"", {}});
  prepare();
  enqueue_jobs(store_, jobs_of("again", 1));
  announce_("complete with a follow-up", 2);
  settle_jobs(store_, take_jobs(store_, {"again"}, 1), Complete{"", jobs_of("walk", 1, "follow")});
}

void QueryPlanDriver::chain() {
  prepare();
  const Run first = enqueue_jobs(store_, jobs_of("first", 1)).front();
  auto jobs = jobs_of("second", kFew);
  for (EnqueueRequest& job : jobs) job.after = {first.id()};
  announce_("enqueue dependents", kFew);
  const auto waiting = enqueue_jobs(store_, jobs);
  announce_("cancel a dependent", 1);
  move_run(store_, waiting.front().id(), CancelByHand{});
  announce_("complete a predecessor", kFew);
  settle_jobs(store_, take_jobs(store_, {"first"}, 1), Complete{"", {}});
  prepare();
  EXPECT_EQ(take_jobs(store_, {"second"}, kFew).size(), std::size_t{kFew - 1});
}

void QueryPlanDriver::fail_runs() {
  prepare();
  enqueue_jobs(store_, jobs_of("broken", kFew, "b"));
  announce_("fail permanently", kFew);
  const auto taken = take_jobs(store_, {"broken"}, kFew);
  const auto settled = settle_jobs(store_, taken, Fail{.message = "m", .code = "E", .retryable = false});
  const Uuid letter = std::get<Settled>(settled.front()).dead_letter.value();
  announce_("fail it again", 1);
  settle_jobs(store_, {taken.front()}, Fail{.message = "m", .code = "E", .retryable = false});
  DeadLetterActionRequest wish{
      .tenant = {}, .dead_letter = letter, .runs = {}, .move = RetryByHand{}, .by = "ada", .note = "", .cursor = ""};
  wish.runs = {taken[1].run.id()};
  announce_("retry a member", 1);
  store_.act_on_dead_letter(wish).value();
  wish.runs.clear();
  announce_("retry all members", kFew);
  store_.act_on_dead_letter(wish).value();
  announce_("take and fail them again", kFew);
  settle_jobs(store_, take_jobs(store_, {"broken"}, kFew), Fail{.message = "m", .code = "E", .retryable = false});
  announce_("retry by hand", 1);
  move_run(store_, taken[2].run.id(), RetryByHand{});
  announce_("list members", kFew);
  store_.list_members(letter, kFew).value();
  announce_("list dead letters", kFew);
  const auto letters = store_.list_dead_letters({.tenant = "default"}).value();
  EXPECT_GE(letters.entries.size(), 2u);
  announce_("find a dead letter", 1);
  store_.find_dead_letter("default", letter).value();
  announce_("acknowledge", 1);
  store_.acknowledge("default", letter, "ada").value();
  // The dead letter with thousands of members.
  for (const DeadLetter& entry : letters.entries) {
    if (entry.function != "dead") continue;
    announce_("list some of many members", kFew);
    store_.list_members(entry.id, kFew).value();
    announce_("retry some of many members", kFew);
    store_
        .act_on_dead_letter({.tenant = {},
                           .dead_letter = entry.id,
                           .runs = {},
                           .move = RetryByHand{},
                           .by = "ada",
                           .note = "",
                           .cursor = "",
                           .limit = kFew})
        .value();
  }
}

// The leases are hours long, so the test sets their deadlines in SQL.
void QueryPlanDriver::sweep() {
  announce_("sweep without expired leases", 1);
  EXPECT_EQ(sweep_all(store_).changed, 0u);
  prepare();
  enqueue_jobs(store_, jobs_of("lost", kBatch));
  take_jobs(store_, {"lost"}, kBatch);
  client_.execute("UPDATE latchkey.blocks SET lease_until = 1 WHERE function = 'lost'");
  announce_("sweep a block", kBatch);
  EXPECT_EQ(sweep_all(store_).changed, std::uint32_t{kBatch});
  client_.execute("UPDATE latchkey.states SET at = 1 WHERE function = 'lost'");
  prepare();
  take_jobs(store_, {"lost"}, kFew);
  client_.execute("UPDATE latchkey.states SET lease_until = 1, deadline = 1 WHERE function = 'lost' AND status = 1");
  announce_("sweep retries", kFew);
  EXPECT_EQ(sweep_all(store_).changed, std::uint32_t{kFew});
}

// Polls until `count` sessions wait for a lock. The wait may be short, so the loop has no pause.
void QueryPlanDriver::wait_for_lock_waits(const char* count) {
  for (int tries = 0; tries < 1'000'000; ++tries)
    if (client_.ask_one("SELECT count(*) FROM pg_locks WHERE NOT granted") == count) return;
  throw std::runtime_error("no session waited for the lock");
}

// Runs statements while another transaction has locks: on a new key, and on a dead letter.
void QueryPlanDriver::run_beside_locks() {
  prepare();
  client_.execute(
      "SELECT set_config('app.current_tenant', 'default', false); BEGIN; SELECT latchkey.begin_run('f', 'contended')");
  announce_("claim a contended key", 1);
  std::promise<Result<ClaimReply>> promise;
  store_.claim(a_claim("contended"), [&](Result<ClaimReply> reply) { promise.set_value(std::move(reply)); });
  wait_for_lock_waits("1");
  wait_for_lock_waits("0");
  client_.execute("COMMIT");
  EXPECT_TRUE(std::holds_alternative<Busy>(promise.get_future().get().value()));

  prepare();
  auto jobs = jobs_of("locked", 2 * kFew + 1);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].retry.retries = i < kFew ? 1 : 0;
  enqueue_jobs(store_, jobs);
  settle_jobs(store_, take_jobs(store_, {"locked"}, kFew), Fail{.message = "m", .code = "E", .retry_after = 0ms});
  settle_jobs(store_, take_jobs(store_, {"locked"}, 1), Fail{.message = "m", .code = "E", .retryable = false});
  client_.execute("UPDATE latchkey.states SET at = 1 WHERE function = 'locked' AND status = 0");
  EXPECT_EQ(take_jobs(store_, {"locked"}, 2 * kFew).size(), std::size_t{2 * kFew});
  client_.execute(
      "UPDATE latchkey.blocks SET lease_until = 1 WHERE function = 'locked'; UPDATE latchkey.states SET lease_until = "
      "1, "
      "deadline = 1 WHERE function = 'locked' AND status = 1");
  client_.execute("BEGIN; SELECT 1 FROM latchkey.dead_letters WHERE function = 'locked' FOR UPDATE");
  // A sweep defers contended runs for a second. The loop repeats the steps, because that second may end between them.
  for (int i = 0; i < 3; ++i) {
    announce_("sweep contended runs", 2 * kFew);
    EXPECT_EQ(sweep_all(store_).changed, 0u);
    announce_("sweep past deferred runs", 2 * kFew);
    EXPECT_EQ(sweep_all(store_).changed, 0u);
    announce_("take past contended runs", kFew);
    take_jobs(store_, {"other"}, kFew);
    take_jobs(store_, {"again"}, kFew, "default");
  }
  client_.execute("COMMIT");
}

void QueryPlanDriver::read() {
  announce_("list", kFew);
  const auto runs = store_.list({.limit = kFew}).value().runs;
  announce_("list without payloads", kFew);
  store_.list({.limit = kFew, .with_payloads = false}).value();
  announce_("list of a function without payloads", kFew);
  store_.list({.tenant = "default", .function = "done", .limit = kFew, .with_payloads = false}).value();
  announce_("list up to a payload limit", kFew);
  store_.list({.tenant = "default", .limit = kFew, .payload_bytes_max = 1}).value();
  announce_("list of a tenant", kFew);
  store_.list({.tenant = "default", .limit = kFew}).value();
  announce_("list of a function", kFew);
  store_.list({.tenant = "default", .function = "done", .limit = kFew}).value();
  announce_("list a status", kFew);
  store_.list({.tenant = "default", .status = Status::cancelled, .limit = kFew}).value();
  for (const Status status : {Status::in_doubt, Status::completed, Status::failed}) {
    const std::string name(to_string(status));
    announce_("list " + name, kFew);
    store_.list({.status = status, .limit = kFew}).value();
    announce_("list " + name + " of a function", kFew);
    const std::string function = status == Status::completed ? "done" : status == Status::failed ? "dead" : "work";
    store_.list({.tenant = "default", .function = function, .status = status, .limit = kFew}).value();
  }
  announce_("list failed of a tenant", kFew);
  store_.list({.tenant = "default", .status = Status::failed, .limit = kFew}).value();
  announce_("list a function of every tenant", kFew);
  store_.list({.function = "work", .limit = kFew}).value();
  announce_("list a key", kFew);
  store_.list({.tenant = "default", .function = "done", .key = "10000.0/7", .limit = kFew}).value();
  announce_("list since", kFew);
  store_.list({.tenant = "default", .since = store_.now() + 1h, .limit = kFew}).value();
  announce_("find", 1);
  store_.find("default", runs.front().id()).value();
  store_.find(std::nullopt, runs.front().id()).value();
  announce_("find by key", 1);
  EXPECT_TRUE(store_.find_latest({"default", "done", "10000.0/7", hash_key("default", "done", "10000.0/7")}).value());
  std::vector<DuplicateNote> notes;
  for (const Run& run : runs)
    notes.push_back({run.id(), {.counts = {{"REPLAYED", 1, store_.now(), store_.now()}}, .latest = {}}});
  announce_("note duplicates", kFew);
  await<std::monostate>([&](auto done) { store_.note_duplicates(notes, std::move(done)); });
  announce_("count", 10'000'000);
  store_.stats().value();
  announce_("find duplicates", 1);
  EXPECT_TRUE(store_.find_duplicates(runs.front().id()).value());
}

// Completed runs, failed runs with an acknowledged dead letter, and runs that completed after a release.
void QueryPlanDriver::purge() {
  client_.execute("INSERT INTO latchkey.batches SELECT gen_random_uuid(), i FROM generate_series(1, 20) i");
  announce_("purge only old batch names", kBatch);
  EXPECT_EQ(purge_all(store_, {}).changed, 0u);
  EXPECT_EQ(client_.ask_one("SELECT count(*) FROM latchkey.batches WHERE at <= 20"), "0");
  prepare();
  auto jobs = jobs_of("old", 3 * kFew, "o");
  for (EnqueueRequest& job : jobs) job.window = 1ms;
  const auto runs = enqueue_jobs(store_, jobs);
  settle_jobs(store_, take_jobs(store_, {"old"}, kFew), Complete{"", {}});
  const auto failed = settle_jobs(store_, take_jobs(store_, {"old"}, kFew), Fail{.message = "m", .retryable = false});
  const Uuid letter = std::get<Settled>(failed.front()).dead_letter.value();
  store_
      .act_on_dead_letter({.tenant = {},
                           .dead_letter = letter,
                           .runs = {},
                           .move = ResolveFailed{"no"},
                           .by = "ada",
                           .note = "",
                           .cursor = ""})
      .value();
  store_.acknowledge({}, letter, "ada").value();
  settle_jobs(store_, take_jobs(store_, {"old"}, kFew), Release{});
  settle_jobs(store_, take_jobs(store_, {"old"}, kFew), Complete{"", {}});
  std::uint32_t purged = 0;
  for (int tries = 0; purged < runs.size() && tries < 100; ++tries) {
    client_.execute("SELECT setval('latchkey.purged', min(seq) - 1) FROM latchkey.runs WHERE function = 'old'");
    announce_("purge", kBatch);
    purged += purge_all(store_, {.done = 0ms, .failed = 0ms}).changed;
  }
  EXPECT_EQ(purged, runs.size());
}

}  // namespace latchkey
