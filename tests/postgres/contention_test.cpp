// One user's open transaction, and what Latchkey does for everybody: ending leases, counting, purging, finding itself
// on another server. What the transaction holds is left for later; the rest is not.
#include <future>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/stopped_clock.hpp"

namespace latchkey {
namespace {

class PostgresHeld : public PostgresStores {
 protected:
  static constexpr std::uint32_t kInBlock = 8, kInRows = 2, kHeld = kInBlock + kInRows;
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
  // At their only try, in a block, or at their last, in rows of their own. A dead worker has them.
  void leave_last_tries(const std::string& tenant) {
    add(tenant, 1, kInRows);
    for (const Taken& each : take(tenant, kInRows, 1h)) verbs().settle({{}, each.run.id(), each.fence, retryable()});
    time_.advance(1min);
    add(tenant, 0, kInBlock);
    ASSERT_EQ(take(tenant, 100, 1h).size(), kHeld);
  }
  // Theirs end later: they are behind all of the others.
  void leave_first_tries(const std::string& tenant, std::uint32_t count) {
    add(tenant, 3, count);
    ASSERT_EQ(take(tenant, count, 2h).size(), count);
  }
  static std::string name(const Taken& taken) {
    return "'" + to_string(taken.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(taken.fence));
  }
  // Their next try is due, and too late: they fail when somebody wants to take them.
  void leave_late_tries(const std::string& tenant, std::uint32_t count) {
    EnqueueRequest job{.tenant = tenant, .function = "f", .retry = {.retries = 3, .total = 30s}};
    verbs().enqueue_all({count, job});
    for (const Taken& each : take(tenant, count, 1h)) verbs().settle({{}, each.run.id(), each.fence, retryable()});
    time_.advance(1min);
  }
  // Of whoever's.
  std::size_t take_any(std::uint32_t limit) {
    return verbs().take({.functions = {"f"}, .limit = limit, .session = id_of(5), .lease = 1h}).size();
  }
  // Whatever else there is, is taken; also where it is only of the same tenant.
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
  // As the engine does: when one is passed over it is looked at again by itself.
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
  // What is held is not refused before the test lets it go.
  std::unique_ptr<PostgresStore> store_ = open(url(), {.clock = &time_, .patience = 30s});
};

TEST_F(PostgresHeld, ASweepLeavesOutWhatNeedsALetterThatIsBeingAcknowledged) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 1h).at(0);
  const Uuid letter = *std::get<Settled>(verbs().settle({{}, first.run.id(), first.fence, permanent()})).dead_letter;
  leave_last_tries("a");
  leave_first_tries("b", 3);
  time_.advance(3h);
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry('" + to_string(letter) + "', 'ada')");
  EXPECT_EQ(verbs().sweep().changed, 3u) << "another tenant's, at once";
  EXPECT_EQ(store_->stats().value().queued, 3u);
  holder.execute("COMMIT");
  sweep_until(kHeld);
  ASSERT_EQ(letters().size(), 2u);
  EXPECT_EQ(letters().at(0).count, kHeld) << "a new one, as the other was read";
  EXPECT_EQ(letters().at(1).count, 1u);
}

// What was left out is passed over for a second: as many sweeps as it takes to come to the others fit into it.
TEST_F(PostgresHeld, MoreOfThemThanASweepTakesDoNotStopIt) {
  StoppedClock host;
  store_ = open(url(), {.clock = &time_}, host);
  add("a", 0, 1);
  const Taken first = take("a", 1, 1h).at(0);
  verbs().settle({{}, first.run.id(), first.fence, permanent()});
  leave_last_tries("a");
  leave_first_tries("b", 3);
  time_.advance(3h);
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry(id, 'ada') FROM latchkey.dead_letter_queue");
  std::uint32_t changed = 0;
  for (int i = 0; i < 8; ++i) changed += verbs().sweep(3).changed;
  EXPECT_EQ(changed, 3u);
  host.let_go();
  holder.execute("ROLLBACK");
  sweep_until(kHeld);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, 1 + kHeld);
  store_.reset();  // before its clock
}

// The letter is new: nobody but that transaction can see it.
class PostgresHeldNewLetter : public PostgresHeld, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Then, PostgresHeldNewLetter, testing::Values("COMMIT", "ROLLBACK"),
                         [](const auto& end) { return std::string(end.param); });

TEST_P(PostgresHeldNewLetter, ASweepLeavesOutWhatNeedsIt) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 10h).at(0);
  leave_last_tries("a");
  leave_first_tries("b", 3);
  // Another tenant's that makes a new letter, too.
  add("c", 0, 1);
  ASSERT_EQ(take("c", 1, 1h).size(), 1u);
  time_.advance(3h);
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.fail_run(" + name(first) + ", 'm', retryable => false)");
  EXPECT_EQ(verbs().sweep().changed, 4u) << "other tenants', at once";
  EXPECT_EQ(store_->stats().value().queued, 3u);
  EXPECT_EQ(store_->list({.status = Status::failed}).value().runs.size(), 1u);
  holder.execute(GetParam());
  sweep_until(kHeld);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, kHeld + (std::string(GetParam()) == "COMMIT" ? 1 : 0));
}

TEST_F(PostgresHeld, ASweepLeavesOutWhatAHeldRunWaitsFor) {
  leave_last_tries("a");
  const Uuid last = store_->list({.tenant = "a", .limit = 1}).value().runs.at(0).id();
  const auto waiting = std::get<Enqueued>(verbs().enqueue({.tenant = "a", .function = "g", .after = {last}}));
  leave_first_tries("b", 3);
  time_.advance(3h);
  PgClient holder = user();
  EXPECT_EQ(holder
                .ask("BEGIN; SELECT s.seq FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.id = '" +
                     to_string(waiting.run.id()) + "' FOR UPDATE OF s")
                .size(),
            1u);
  EXPECT_EQ(verbs().sweep().changed, 3 + kHeld - 1);
  holder.execute("COMMIT");
  sweep_until(1);
  EXPECT_EQ(letters().at(0).count, kHeld);
}

TEST_F(PostgresHeld, ATakeLeavesOutWhatIsTooLateAndNeedsALetterThatIsBeingAcknowledged) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 1h).at(0);
  const Uuid letter = *std::get<Settled>(verbs().settle({{}, first.run.id(), first.fence, permanent()})).dead_letter;
  leave_late_tries("a", 3);
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry('" + to_string(letter) + "', 'ada')");
  expect_takes(3);
  EXPECT_EQ(letters().at(0).count, 1u);
  holder.execute("COMMIT");
  sweep_until(3);
  ASSERT_EQ(letters().size(), 2u);
  EXPECT_EQ(letters().at(0).count, 3u);
}

TEST_P(PostgresHeldNewLetter, ATakeLeavesOutWhatIsTooLateAndNeedsIt) {
  add("a", 0, 1);
  const Taken first = take("a", 1, 10h).at(0);
  leave_late_tries("a", 3);
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.fail_run(" + name(first) + ", 'm', retryable => false)");
  expect_takes(3);
  EXPECT_TRUE(letters().empty());
  holder.execute(GetParam());
  sweep_until(3);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, 3u + (std::string(GetParam()) == "COMMIT" ? 1 : 0));
}

TEST_F(PostgresHeld, ATakeLeavesOutWhatIsTooLateAndAHeldRunWaitsFor) {
  leave_late_tries("a", 3);
  const Uuid late = store_->list({.tenant = "a", .limit = 1}).value().runs.at(0).id();
  const auto waiting = std::get<Enqueued>(
      verbs().enqueue({.tenant = "a", .function = "g", .after = {late}, .on_failed = OnFailed::skip}));
  PgClient holder = user();
  EXPECT_EQ(holder
                .ask("BEGIN; SELECT s.seq FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.id = '" +
                     to_string(waiting.run.id()) + "' FOR UPDATE OF s")
                .size(),
            1u);
  expect_takes(3);
  sweep_until(2);
  EXPECT_EQ(letters().at(0).count, 2u) << "those that nobody waits for";
  holder.execute("COMMIT");
  sweep_until(1);
  EXPECT_EQ(letters().at(0).count, 3u);
}

TEST_F(PostgresHeld, APurgeLeavesOutWhoseKeyIsHeld) {
  for (const std::string key : {"free", "held"}) {
    ClaimRequest request = a_claim(key);
    request.window = 1ms;
    const Won won = std::get<Won>(verbs().claim(request));
    verbs().settle({{}, won.run.id(), won.fence, Complete{"r", {}}});
  }
  time_.advance(1h);
  PgClient holder = user();
  EXPECT_EQ(holder
                .ask("BEGIN; SELECT k.seq FROM latchkey.keys k JOIN latchkey.runs r USING (seq) WHERE r.key = 'held' "
                     "FOR UPDATE OF k")
                .size(),
            1u);
  EXPECT_EQ(verbs().purge({.done = 0ms, .failed = 0ms}).changed, 1u);
  holder.execute("COMMIT");
  EXPECT_EQ(verbs().purge({.done = 0ms, .failed = 0ms}).changed, 1u);
}

TEST_F(PostgresHeld, DuplicatesOfARunAreCountedWhileSomebodyOwnsIt) {
  leave_first_tries("a", 2);
  const Taken own = [&] {
    add("a", 3, 1);
    return take("a", 1, 1h).at(0);
  }();
  const Uuid other = store_->list({.tenant = "a", .limit = 3}).value().runs.at(2).id();
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.heartbeat(" + name(own) + ")");
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
  holder.execute("COMMIT");
}

// One call of many, of which somebody holds one: their leases would end, and they would run again.
class PostgresHeldOne : public PostgresHeld {
 protected:
  // Keys of these, claimed.
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
  static bool is_open(const std::future<T>& reply) {
    return reply.wait_for(0ms) == std::future_status::timeout;
  }
  static std::string hold(const Won& won) {
    return "BEGIN; SELECT latchkey.heartbeat('" + to_string(won.run.id()) + "', " +
           std::to_string(static_cast<std::uint64_t>(won.fence)) + ")";
  }
};

TEST_F(PostgresHeldOne, TheOthersOfItsCallAreSettledAtOnce) {
  const auto won = win({"1", "2", "3", "4"});
  PgClient holder = user();
  holder.execute(hold(won[1]));
  auto replies = ask(&PostgresStore::settle, {done(won[0]), done(won[1]), done(won[2]), done(won[1]), done(won[3])});
  wait_until_completed(3);
  EXPECT_TRUE(is_open(replies)) << "the test did not test";
  holder.execute("COMMIT");
  const auto told = replies.get();
  ASSERT_EQ(told.size(), 5u);
  for (const int place : {0, 1, 2, 4}) EXPECT_TRUE(std::get<Settled>(told[place]).changed) << place;
  EXPECT_FALSE(std::get<Settled>(told[3]).changed) << "it was asked for after the same";
  wait_until_completed(4);
}

TEST_F(PostgresHeldOne, ItAloneIsRefusedWhenPatienceIsOver) {
  store_ = open(url(), {.clock = &time_, .patience = 300ms});
  const auto won = win({"1", "2"});
  PgClient holder = user();
  holder.execute(hold(won[0]));
  const auto told = ask(&PostgresStore::settle, {done(won[0]), done(won[1])}).get();
  EXPECT_EQ(code_of(told.at(0)), Code::STORE_UNAVAILABLE);
  EXPECT_TRUE(std::get<Settled>(told.at(1)).changed);
  holder.execute("COMMIT");
  EXPECT_TRUE(std::get<Settled>(verbs().settle(done(won[0]))).changed) << "nothing was changed";
}

TEST_F(PostgresHeldOne, AJobWhoseKeyIsHeldDelaysNoOtherOfItsCall) {
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  auto replies = ask(&PostgresStore::enqueue, {a_job("1", "a"), a_job("k", "a"), a_job("2", "a")});
  PgClient(url()).wait_until("SELECT count(*) = 2 FROM latchkey.job_runs");
  EXPECT_TRUE(is_open(replies)) << "the test did not test";
  EXPECT_EQ(take("a", 5, 1h).size(), 2u);
  holder.execute("ROLLBACK");
  for (const auto& reply : replies.get()) EXPECT_FALSE(std::get<Enqueued>(reply).duplicate);
  EXPECT_EQ(take("a", 5, 1h).size(), 1u);
}

// The first to be asked for is the first to be made, though it is held by something else than its key.
TEST_F(PostgresHeldOne, JobsOfOneKeyKeepTheirOrder) {
  const auto won = win({"p"});
  PgClient holder = user();
  holder.execute(hold(won[0]));
  EnqueueRequest first = a_job("k", "a");
  first.after = {won[0].run.id()};
  auto replies = ask(&PostgresStore::enqueue, {first, a_job("k", "a"), a_job("2", "a")});
  PgClient(url()).wait_until("SELECT count(*) = 2 FROM latchkey.job_runs");
  holder.execute("COMMIT");
  const auto told = replies.get();
  EXPECT_FALSE(std::get<Enqueued>(told.at(0)).duplicate);
  EXPECT_TRUE(std::get<Enqueued>(told.at(1)).duplicate);
}

// Of which nobody can know before it is settled: neither the call nor its batch waits with it.
TEST_F(PostgresHeldOne, ASettlementWhoseFollowUpIsHeldWaitsAlone) {
  const auto won = win({"1", "2", "3"});
  PgClient holder = user();
  holder.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  EnqueueRequest follow_up = a_job("k", "a");
  follow_up.fingerprint.reset();
  auto replies = ask(&PostgresStore::settle, {done(won[0]), done(won[1], {follow_up}), done(won[2])});
  wait_until_completed(2);
  EXPECT_TRUE(is_open(replies)) << "the test did not test";
  holder.execute("COMMIT");
  const auto told = replies.get();
  const auto& settled = std::get<Settled>(told.at(1));
  EXPECT_TRUE(std::get<Enqueued>(settled.follow_ups.at(0)).duplicate) << "the transaction that was first has it";
  wait_until_completed(3);
}

class PostgresHeldElsewhere : public PostgresHeld, public testing::WithParamInterface<const char*> {};

// A standby was promoted, or a backup restored into another cluster; a user's program comes to it before any server
// does.
TEST_P(PostgresHeldElsewhere, NobodyIsLockedOutOfAnotherServer) {
  add("a", 3, 3);
  const Taken own = take("a", 3, 1h).at(0);
  const Won won = std::get<Won>(verbs().claim(a_claim("k", "a")));
  leave_first_tries("b", 3);
  PgClient holder = user();
  holder.execute(std::string("UPDATE latchkey.place SET ") + GetParam() + " = '00000000'");
  holder.execute("BEGIN; SELECT latchkey.heartbeat(" + name(own) + "); SELECT latchkey.complete_run('" +
                 to_string(won.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(won.fence)) + ", 'r')");
  const auto another = open(url(), {.clock = &time_, .patience = 30s});
  const Won later = std::get<Won>(Verbs(*another).claim(a_claim("new", "b")));
  EXPECT_GT(static_cast<std::uint64_t>(later.fence), 100'000'000'000u) << "the test did not test";
  EXPECT_EQ(Verbs(*another).sweep().changed, 3u) << "what nobody holds ends";
  holder.execute("COMMIT");
  holder.execute("SELECT latchkey.complete_run(" + name(own) + ", 'r')");
  EXPECT_EQ(another->list({.status = Status::completed}).value().runs.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(By, PostgresHeldElsewhere, testing::Values("timeline", "system"),
                         [](const auto& what) { return what.param; });

}  // namespace
}  // namespace latchkey
