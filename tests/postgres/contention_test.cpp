// A user's open transaction locks rows while the store sweeps, takes, counts duplicates, purges, and finds a new server
// identity. The store skips the locked rows and handles all others.
#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/stopped_clock.hpp"

namespace latchkey {
namespace {

class Contention : public PostgresStores {
 protected:
  static constexpr std::uint32_t kInBlock = 8, kInRows = 2, kLast = kInBlock + kInRows;
  using Run = latchkey::Run;
  Verbs verbs() { return Verbs(*store_); }

  PgClient user() {
    PgClient session(url());
    session.execute(
        "INSERT INTO latchkey.members VALUES ('a', 'ada', 'org-admin') ON CONFLICT DO NOTHING; "
        "SET app.current_tenant = 'a'; SET app.current_actor = 'ada'");
    return session;
  }
  std::vector<Taken> take(const std::string& tenant, std::uint32_t limit, Duration lease) {
    return verbs().take({.tenant = tenant, .functions = {"f"}, .limit = limit, .session = id_of(5), .lease = lease});
  }
  void add(const std::string& tenant, std::uint32_t retries, std::uint32_t count) {
    verbs().enqueue_all({count, EnqueueRequest{.tenant = tenant, .function = "f", .retry = {.retries = retries}}});
  }
  // Leases runs to a dead worker: in a block, at their only attempt, and in rows of their own, at their last one.
  void lease_last_attempts(const std::string& tenant) {
    add(tenant, 1, kInRows);
    for (const Taken& each : take(tenant, kInRows, 1h)) verbs().settle({{}, each.run.id(), each.fence, retryable()});
    time_.advance(1min);
    add(tenant, 0, kInBlock);
    ASSERT_EQ(take(tenant, 100, 1h).size(), kLast);
  }
  // Leases runs at their first attempt. Their leases expire later, so they are last in the order of a sweep.
  void lease_first_attempts(const std::string& tenant, std::uint32_t count) {
    add(tenant, 3, count);
    ASSERT_EQ(take(tenant, count, 2h).size(), count);
  }
  static std::string name(const Taken& taken) {
    return "'" + to_string(taken.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(taken.fence));
  }
  // Queues retries that are due after their retry deadline: the take that finds them fails them.
  void queue_late_retries(const std::string& tenant, std::uint32_t count) {
    EnqueueRequest job{.tenant = tenant, .function = "f", .retry = {.retries = 3, .total = 30s}};
    verbs().enqueue_all({count, job});
    for (const Taken& each : take(tenant, count, 1h)) verbs().settle({{}, each.run.id(), each.fence, retryable()});
    time_.advance(1min);
  }
  // Takes jobs of any tenant.
  std::size_t take_any(std::uint32_t limit) {
    return verbs().take({.functions = {"f"}, .limit = limit, .session = id_of(5), .lease = 1h}).size();
  }
  // A take gets all other jobs, also if it takes jobs of the same tenant only.
  void expect_takes(std::uint32_t late) {
    for (const std::uint32_t limit : {late, 2 * late, 1u}) {
      add("b", 3, 2);
      add("a", 3, 1);
      EXPECT_EQ(take_any(limit), std::min(limit, 3u));
      EXPECT_EQ(take_any(3), 3 - std::min(limit, 3u));
      add("a", 3, 1);
      EXPECT_EQ(take("a", limit, 1h).size(), 1u);
    }
  }
  std::vector<DeadLetter> letters() {
    return store_->list_dead_letters({.tenant = "a", .with_acknowledged = true}).value().entries;
  }
  // Sweeps repeatedly, as the engine does: the store retries deferred runs by itself.
  void sweep_until(std::uint32_t changed) {
    std::uint32_t all = 0;
    for (const Duration patience = clock_.elapsed() + kPatience; all < changed && clock_.elapsed() < patience;) {
      const std::uint32_t now = verbs().sweep().changed;
      all += now;
      if (now == 0) std::this_thread::sleep_for(5ms);
    }
    EXPECT_EQ(all, changed);
  }

  ManualClock time_{clock_.now()};
  // The time limit is longer than the test has the lock, so no call is rejected.
  std::unique_ptr<PostgresStore> store_ = open(url(), {.clock = &time_, .patience = 30s});
};

TEST_F(Contention, SweepSkipsRunsOfLockedDeadLetter) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 1h).at(0);
  const Uuid letter = *std::get<Settled>(verbs().settle({{}, first.run.id(), first.fence, permanent()})).dead_letter;
  lease_last_attempts("a");
  lease_first_attempts("b", 3);
  time_.advance(3h);
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry('" + to_string(letter) + "', 'ada')");
  EXPECT_EQ(verbs().sweep().changed, 3u) << "the other tenant's runs are not delayed";
  EXPECT_EQ(store_->stats().value().queued, 3u);
  blocker.execute("COMMIT");
  sweep_until(kLast);
  ASSERT_EQ(letters().size(), 2u);
  EXPECT_EQ(letters().at(0).count, kLast) << "a new dead letter, because the first is acknowledged";
  EXPECT_EQ(letters().at(1).count, 1u);
}

// The store defers skipped runs for a second. The stopped clock makes all sweeps fall into that second, so that they
// get past the skipped runs.
TEST_F(Contention, SweepContinuesPastManySkippedRuns) {
  StoppedClock host;
  store_ = open(url(), {.clock = &time_}, host);
  add("a", 0, 1);
  const Taken first = take("a", 1, 1h).at(0);
  verbs().settle({{}, first.run.id(), first.fence, permanent()});
  lease_last_attempts("a");
  lease_first_attempts("b", 3);
  time_.advance(3h);
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry(id, 'ada') FROM latchkey.dead_letter_queue");
  std::uint32_t changed = 0;
  for (int i = 0; i < 8; ++i) changed += verbs().sweep(3).changed;
  EXPECT_EQ(changed, 3u);
  host.resume();
  blocker.execute("ROLLBACK");
  sweep_until(kLast);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, 1 + kLast);
  store_.reset();  // before its clock
}

// The dead letter is new: only the inserting transaction sees it.
class ContentionNewDeadLetter : public Contention, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Then, ContentionNewDeadLetter, testing::Values("COMMIT", "ROLLBACK"),
                         [](const auto& end) { return std::string(end.param); });

TEST_P(ContentionNewDeadLetter, SweepSkipsItsRuns) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 10h).at(0);
  lease_last_attempts("a");
  lease_first_attempts("b", 3);
  // A run of another tenant, whose failure inserts a new dead letter, too.
  add("c", 0, 1);
  ASSERT_EQ(take("c", 1, 1h).size(), 1u);
  time_.advance(3h);
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.fail_run(" + name(first) + ", 'm', retryable => false)");
  EXPECT_EQ(verbs().sweep().changed, 4u) << "the other tenants' runs are not delayed";
  EXPECT_EQ(store_->stats().value().queued, 3u);
  EXPECT_EQ(store_->list({.status = Status::failed}).value().runs.size(), 1u);
  blocker.execute(GetParam());
  sweep_until(kLast);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, kLast + (std::string(GetParam()) == "COMMIT" ? 1 : 0));
}

TEST_F(Contention, SweepSkipsPredecessorOfLockedRun) {
  lease_last_attempts("a");
  const Uuid last = store_->list({.tenant = "a", .limit = 1}).value().runs.at(0).id();
  const auto waiting = std::get<Enqueued>(verbs().enqueue({.tenant = "a", .function = "g", .after = {last}}));
  lease_first_attempts("b", 3);
  time_.advance(3h);
  PgClient blocker = user();
  EXPECT_EQ(blocker
                .ask("BEGIN; SELECT s.seq FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.id = '" +
                     to_string(waiting.run.id()) + "' FOR UPDATE OF s")
                .size(),
            1u);
  EXPECT_EQ(verbs().sweep().changed, 3 + kLast - 1);
  blocker.execute("COMMIT");
  sweep_until(1);
  EXPECT_EQ(letters().at(0).count, kLast);
}

TEST_F(Contention, TakeSkipsLateRetryOfLockedDeadLetter) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 1h).at(0);
  const Uuid letter = *std::get<Settled>(verbs().settle({{}, first.run.id(), first.fence, permanent()})).dead_letter;
  queue_late_retries("a", 3);
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry('" + to_string(letter) + "', 'ada')");
  expect_takes(3);
  EXPECT_EQ(letters().at(0).count, 1u);
  blocker.execute("COMMIT");
  sweep_until(3);
  ASSERT_EQ(letters().size(), 2u);
  EXPECT_EQ(letters().at(0).count, 3u);
}

TEST_P(ContentionNewDeadLetter, TakeSkipsItsLateRetries) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 10h).at(0);
  queue_late_retries("a", 3);
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.fail_run(" + name(first) + ", 'm', retryable => false)");
  expect_takes(3);
  EXPECT_TRUE(letters().empty());
  blocker.execute(GetParam());
  sweep_until(3);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, 3u + (std::string(GetParam()) == "COMMIT" ? 1 : 0));
}

TEST_F(Contention, TakeSkipsLatePredecessorOfLockedRun) {
  queue_late_retries("a", 3);
  const Uuid late = store_->list({.tenant = "a", .limit = 1}).value().runs.at(0).id();
  const auto waiting = std::get<Enqueued>(
      verbs().enqueue({.tenant = "a", .function = "g", .after = {late}, .on_failed = OnFailed::skip}));
  PgClient blocker = user();
  EXPECT_EQ(blocker
                .ask("BEGIN; SELECT s.seq FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.id = '" +
                     to_string(waiting.run.id()) + "' FOR UPDATE OF s")
                .size(),
            1u);
  expect_takes(3);
  sweep_until(2);
  EXPECT_EQ(letters().at(0).count, 2u) << "the two runs without dependents";
  blocker.execute("COMMIT");
  sweep_until(1);
  EXPECT_EQ(letters().at(0).count, 3u);
}

TEST_F(Contention, PurgeSkipsRunWithLockedKey) {
  for (const std::string key : {"free", "locked"}) {
    ClaimRequest request = a_claim(key);
    request.window = 1ms;
    const Won won = std::get<Won>(verbs().claim(request));
    verbs().settle({{}, won.run.id(), won.fence, Complete{"r", {}}});
  }
  time_.advance(1h);
  PgClient blocker = user();
  EXPECT_EQ(blocker
                .ask("BEGIN; SELECT k.seq FROM latchkey.keys k JOIN latchkey.runs r USING (seq) WHERE r.key = 'locked' "
                     "FOR UPDATE OF k")
                .size(),
            1u);
  EXPECT_EQ(verbs().purge({.done = 0ms, .failed = 0ms}).changed, 1u);
  blocker.execute("COMMIT");
  EXPECT_EQ(verbs().purge({.done = 0ms, .failed = 0ms}).changed, 1u);
}

TEST_F(Contention, DuplicatesOfLockedRunAreCounted) {
  lease_first_attempts("a", 2);
  const Taken own = [&] {
    add("a", 3, 1);
    return take("a", 1, 1h).at(0);
  }();
  const Uuid other = store_->list({.tenant = "a", .limit = 3}).value().runs.at(2).id();
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.heartbeat(" + name(own) + ")");
  const auto note = [&] {
    std::vector<DuplicateNote> notes;
    for (const RunId& run : {own.run.id(), other, id_of(99)})
      notes.push_back({run, {.counts = {{"REPLAYED", 1, time_.now(), time_.now()}}, .latest = {}}});
    await<std::monostate>([&](auto done) { store_->note_duplicates(notes, std::move(done)); });
  };
  note();
  note();
  for (const RunId& run : {own.run.id(), other})
    EXPECT_EQ(store_->find_duplicates(run).value().value().counts.at(0).count, 2u);
  blocker.execute("COMMIT");
}

// A call for many runs or keys, one of which is locked. If the others waited, their leases could expire.
class ContentionWithinCall : public Contention {
 protected:
  // Claims the keys.
  std::vector<Won> win(std::initializer_list<const char*> keys) {
    std::vector<Won> won;
    for (const char* key : keys) won.push_back(std::get<Won>(verbs().claim(a_claim(key, "a"))));
    return won;
  }
  static SettleRequest done(const Won& won, std::vector<EnqueueRequest> follow_ups = {}) {
    return {{}, won.run.id(), won.fence, Complete{"r", std::move(follow_ups)}};
  }
  template <class Reply, class Request>
  std::future<std::vector<Reply>> ask(void (PostgresStore::*verb)(std::vector<Request>, Done<std::vector<Reply>>),
                                      std::vector<Request> requests) {
    auto promise = std::make_shared<std::promise<std::vector<Reply>>>();
    (store_.get()->*verb)(std::move(requests), [promise](Result<std::vector<Reply>> replies) {
      if (!replies) {
        promise->set_exception(std::make_exception_ptr(std::runtime_error(to_string(replies.error()))));
      } else {
        promise->set_value(std::move(*replies));
      }
    });
    return promise->get_future();
  }
  void wait_until_completed(std::uint64_t count) {
    PgClient(url()).wait_until("SELECT count(*) = " + std::to_string(count) +
                               " FROM latchkey.job_runs WHERE status = 'completed'");
  }
  template <class T>
  static bool is_pending(const std::future<T>& reply) {
    return reply.wait_for(0ms) == std::future_status::timeout;
  }
  static std::string begin_with_lock(const Won& won) {
    return "BEGIN; SELECT latchkey.heartbeat('" + to_string(won.run.id()) + "', " +
           std::to_string(static_cast<std::uint64_t>(won.fence)) + ")";
  }
};

TEST_F(ContentionWithinCall, OtherRunsAreSettledAtOnce) {
  const auto won = win({"1", "2", "3", "4"});
  PgClient blocker = user();
  blocker.execute(begin_with_lock(won[1]));
  auto replies = ask(&PostgresStore::settle, {done(won[0]), done(won[1]), done(won[2]), done(won[1]), done(won[3])});
  wait_until_completed(3);
  EXPECT_TRUE(is_pending(replies)) << "the call got its reply before the lock was released";
  blocker.execute("COMMIT");
  const auto results = replies.get();
  ASSERT_EQ(results.size(), 5u);
  for (const int index : {0, 1, 2, 4}) EXPECT_TRUE(std::get<Settled>(results[index]).changed) << index;
  EXPECT_FALSE(std::get<Settled>(results[3]).changed) << "the same settlement is earlier in the call";
  wait_until_completed(4);
}

TEST_F(ContentionWithinCall, OnlyLockedRunIsRejected) {
  store_ = open(url(), {.clock = &time_, .patience = 300ms});
  const auto won = win({"1", "2"});
  PgClient blocker = user();
  blocker.execute(begin_with_lock(won[0]));
  const auto results = ask(&PostgresStore::settle, {done(won[0]), done(won[1])}).get();
  EXPECT_EQ(code_of(results.at(0)), Code::STORE_UNAVAILABLE);
  EXPECT_TRUE(std::get<Settled>(results.at(1)).changed);
  blocker.execute("COMMIT");
  EXPECT_TRUE(std::get<Settled>(verbs().settle(done(won[0]))).changed) << "nothing was changed";
}

TEST_F(ContentionWithinCall, LockedKeyDelaysNoOtherJob) {
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  auto replies = ask(&PostgresStore::enqueue, {a_job("1", "a"), a_job("k", "a"), a_job("2", "a")});
  PgClient(url()).wait_until("SELECT count(*) = 2 FROM latchkey.job_runs");
  EXPECT_TRUE(is_pending(replies)) << "the call got its reply before the lock was released";
  EXPECT_EQ(take("a", 5, 1h).size(), 2u);
  blocker.execute("ROLLBACK");
  for (const auto& reply : replies.get()) EXPECT_FALSE(std::get<Enqueued>(reply).duplicate);
  EXPECT_EQ(take("a", 5, 1h).size(), 1u);
}

// The first request of a key creates its run, although that request waits for another lock than the key's.
TEST_F(ContentionWithinCall, JobsOfOneKeyStayInOrder) {
  const auto won = win({"p"});
  PgClient blocker = user();
  blocker.execute(begin_with_lock(won[0]));
  EnqueueRequest first = a_job("k", "a");
  first.after = {won[0].run.id()};
  auto replies = ask(&PostgresStore::enqueue, {first, a_job("k", "a"), a_job("2", "a")});
  PgClient(url()).wait_until("SELECT count(*) = 2 FROM latchkey.job_runs");
  blocker.execute("COMMIT");
  const auto results = replies.get();
  EXPECT_FALSE(std::get<Enqueued>(results.at(0)).duplicate);
  EXPECT_TRUE(std::get<Enqueued>(results.at(1)).duplicate);
}

// The store finds the locked key of a follow-up only when it settles the run. Neither the call nor its batch waits.
TEST_F(ContentionWithinCall, LockedFollowUpDelaysOneRun) {
  const auto won = win({"1", "2", "3"});
  PgClient blocker = user();
  blocker.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  EnqueueRequest follow_up = a_job("k", "a");
  follow_up.fingerprint.reset();
  auto replies = ask(&PostgresStore::settle, {done(won[0]), done(won[1], {follow_up}), done(won[2])});
  wait_until_completed(2);
  EXPECT_TRUE(is_pending(replies)) << "the call got its reply before the lock was released";
  blocker.execute("COMMIT");
  const auto results = replies.get();
  const auto& settled = std::get<Settled>(results.at(1));
  EXPECT_TRUE(std::get<Enqueued>(settled.follow_ups.at(0)).duplicate) << "the first transaction created the run";
  wait_until_completed(3);
}

class ContentionNewServer : public Contention, public testing::WithParamInterface<const char*> {};

// A standby was promoted, or a backup was restored into another cluster. A user's program connects to the new server
// before any store does.
TEST_P(ContentionNewServer, LeasesOfUnlockedRunsExpire) {
  add("a", 3, 3);
  const Taken own = take("a", 3, 1h).at(0);
  const Won won = std::get<Won>(verbs().claim(a_claim("k", "a")));
  lease_first_attempts("b", 3);
  PgClient blocker = user();
  blocker.execute(std::string("UPDATE latchkey.place SET ") + GetParam() + " = '00000000'");
  blocker.execute("BEGIN; SELECT latchkey.heartbeat(" + name(own) + "); SELECT latchkey.complete_run('" +
                  to_string(won.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(won.fence)) + ", 'r')");
  const auto another = open(url(), {.clock = &time_, .patience = 30s});
  const Won later = std::get<Won>(Verbs(*another).claim(a_claim("new", "b")));
  EXPECT_GT(static_cast<std::uint64_t>(later.fence), 100'000'000'000u) << "the fences did not jump";
  EXPECT_EQ(Verbs(*another).sweep().changed, 3u) << "the leases of unlocked runs expire";
  blocker.execute("COMMIT");
  blocker.execute("SELECT latchkey.complete_run(" + name(own) + ", 'r')");
  EXPECT_EQ(another->list({.status = Status::completed}).value().runs.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(By, ContentionNewServer, testing::Values("timeline", "system"),
                         [](const auto& what) { return what.param; });

}  // namespace
}  // namespace latchkey
