// One user's open transaction, and what Latchkey does for everybody: ending leases, counting, purging, finding itself
// on another server. What the transaction holds is left for later; the rest is not.
#include <thread>

#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"

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
  std::vector<DeadLetter> letters() {
    return store_->records().list_dead_letters({.tenant = "a", .with_acknowledged = true}).value().entries;
  }
  // As the engine does: when one is passed over it is looked at again by itself.
  void sweep_until(std::uint32_t changed) {
    std::uint32_t all = 0;
    for (const Duration patience = clock_.elapsed() + 20s; all < changed && clock_.elapsed() < patience;) {
      const std::uint32_t now = verbs().sweep().changed;
      all += now;
      if (now == 0) std::this_thread::sleep_for(5ms);
    }
    EXPECT_EQ(all, changed);
  }

  ManualClock time_{clock_.now()};
  std::unique_ptr<PostgresStore> store_ = open(url(), {.clock = &time_, .patience = 2s});
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
  EXPECT_EQ(store_->census().value().queued, 3u);
  holder.execute("COMMIT");
  sweep_until(kHeld);
  ASSERT_EQ(letters().size(), 2u);
  EXPECT_EQ(letters().at(0).count, kHeld) << "a new one, as the other was read";
  EXPECT_EQ(letters().at(1).count, 1u);
}

TEST_F(PostgresHeld, MoreOfThemThanASweepTakesDoNotStopIt) {
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
  holder.execute("ROLLBACK");
  sweep_until(kHeld);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_EQ(letters().at(0).count, 1 + kHeld);
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
  EXPECT_EQ(store_->census().value().queued, 3u);
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

// A standby was promoted; a user's program comes to it before any server does.
TEST_F(PostgresHeld, NobodyIsLockedOutOfAnotherServer) {
  add("a", 3, 3);
  const Taken own = take("a", 3, 1h).at(0);
  const Won won = std::get<Won>(verbs().claim(a_claim("k", "a")));
  leave_first_tries("b", 3);
  PgClient holder = user();
  holder.execute("UPDATE latchkey.place SET timeline = '00000000'");
  holder.execute("BEGIN; SELECT latchkey.heartbeat(" + name(own) + "); SELECT latchkey.complete_run('" +
                 to_string(won.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(won.fence)) + ", 'r')");
  const auto another = open(url(), {.clock = &time_, .patience = 2s});
  const Won later = std::get<Won>(Verbs(*another).claim(a_claim("new", "b")));
  EXPECT_GT(static_cast<std::uint64_t>(later.fence), 1'000'000'000u) << "the test did not test";
  EXPECT_EQ(Verbs(*another).sweep().changed, 3u) << "what nobody holds ends";
  holder.execute("COMMIT");
  holder.execute("SELECT latchkey.complete_run(" + name(own) + ", 'r')");
  EXPECT_EQ(another->list({.status = Status::completed}).value().runs.size(), 2u);
}

}  // namespace
}  // namespace latchkey
