// The fault walk beside a user's open transaction, which inserts or locks rows that the store needs (a dead letter,
// keys, run heads). The store detects the contention, skips or parks, and retries. A fault at any of its round trips or
// COMMITs must not change any reply or row.
#include "support/postgres/pg_walk.hpp"

namespace latchkey {
namespace {

// A clock that is fifty times as fast as the machine's, for the store's delays: parked commands are retried after 250
// ms, and deferred runs after a second.
class FiftyfoldClock final : public Clock {
 public:
  static constexpr int kTimes = 50;
  Instant now() override { return real_.now(); }
  Duration elapsed() override { return real_.elapsed() * kTimes; }
  Task<void> wait(Duration span) override { return real_.wait(span / kTimes); }

 private:
  SystemClock real_;
};

// The database as text, without times: SQL functions use the database's clock.
constexpr const char* kSnapshot = R"(
WITH names AS (
  SELECT seq, concat_ws('/', tenant, function, convert_from(coalesce(key, input), 'UTF8')) AS name FROM latchkey.runs
)
SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
  SELECT concat_ws(' ', 'run', n.name, s.status, s.generation, s.attempt, s.attempts_total, s.failures, s.waiting_for,
    'result', s.result, s.code, s.effect) AS line FROM names n JOIN latchkey.all_states s USING (seq)
  UNION ALL SELECT concat_ws(' ', 'states', (SELECT count(*) FROM latchkey.all_states))
  UNION ALL SELECT concat_ws(' ', 'letter', l.tenant, l.function, l.count, l.acknowledged_at IS NOT NULL)
    FROM latchkey.dead_letters l
  UNION ALL SELECT concat_ws(' ', 'member', coalesce(n.name, 'gone'), m.generation, m.attempts,
    (SELECT l.acknowledged_at IS NOT NULL FROM latchkey.dead_letters l WHERE l.number = m.letter))
    FROM latchkey.dead_letter_members m LEFT JOIN names n USING (seq)
  UNION ALL SELECT concat_ws(' ', 'duplicates of', coalesce(n.name, 'none'), encode(d.seen, 'hex'))
    FROM latchkey.duplicates d LEFT JOIN names n USING (seq)
) lines)";

// The number of dead letters whose count differs from their members.
constexpr const char* kMiscounted =
    "SELECT count(*) FROM latchkey.dead_letters l WHERE l.count <> (SELECT count(*) FROM latchkey.dead_letter_members "
    "m "
    "WHERE m.letter = l.number)";

class ContentionWalk : public PgWalk {
 public:
  static std::vector<NamedFaults> kinds() {
    // The later round trips are alike, so each kind of fault visits every second or third one.
    return {{"TripRequestLost", {{FaultAt::trip_request, FaultHow::close}}, 3},
            {"TripReplyLost", {{FaultAt::trip_reply, FaultHow::reset, 1}}, 3},
            {"CommitNotSent", {{FaultAt::commit_request, FaultHow::close}}, 2},
            {"CommitReplyLostTwice",
             {{FaultAt::commit_reply, FaultHow::reset},
              {FaultAt::commit_request, FaultHow::reset},
              {FaultAt::commit_reply, FaultHow::close}},
             3},
            {"CommitLate",
             {{FaultAt::flight_request, FaultHow::late, 1, ConnectionFault::kWithNextFault},
              {FaultAt::commit_request, FaultHow::close}},
             3}};
  }

 protected:
  static constexpr std::uint32_t kInBlock = 4, kInRows = 2, kLast = kInBlock + kInRows;
  // Enough round trips for the store to detect the contention and to retry.
  static constexpr std::uint64_t kTrips = 24;
  // The last statement of the user's transaction.
  using End = const char*;
  static constexpr End kEnds[] = {"COMMIT", "ROLLBACK"};

  struct Scene {
    explicit Scene(const std::string& url) : blocker(url) {}
    ManualClock clock{kNoon};
    std::unique_ptr<PostgresStore> store;  // behind the proxy
    std::unique_ptr<PostgresStore> other;
    PgClient blocker;

    Verbs verbs() const { return Verbs(*store); }
  };
  std::unique_ptr<Scene> set_scene() {
    empty();
    auto scene = std::make_unique<Scene>(url());
    const auto open = [&](const std::string& at) {
      PostgresSettings settings{
          .url = at, .writers = 1, .clock = &scene->clock, .patience = FiftyfoldClock::kTimes * 10s};
      if (std::exchange(is_migrated_, true)) return PostgresStore::open(std::move(settings), *host_, random_).value();
      return migrate::open_postgres(std::move(settings), *host_, random_).value();
    };
    scene->store = open(proxy_.url(database()));
    scene->other = open(url());
    scene->blocker.execute(
        "INSERT INTO latchkey.members VALUES ('a', 'ada', 'org-admin') ON CONFLICT DO NOTHING; "
        "SET app.current_tenant = 'a'; SET app.current_actor = 'ada'");
    return scene;
  }
  // Runs `act`, which must wait for the user's transaction, and ends that transaction after kTrips round trips.
  auto while_locked(Scene& scene, End end, auto act) {
    const std::uint64_t from = proxy_.trips();
    auto waiting = std::async(std::launch::async, act);
    while (proxy_.trips() < from + kTrips && waiting.wait_for(1ms) != std::future_status::ready) {
    }
    EXPECT_NE(waiting.wait_for(0s), std::future_status::ready) << "the call did not wait for the lock";
    // Other calls do not wait.
    EXPECT_TRUE(std::holds_alternative<Won>(scene.verbs().claim(a_claim("free"))));
    scene.blocker.execute(end);
    return waiting.get();
  }
  static std::string name(const Won& own) {
    return "'" + to_string(own.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(own.fence));
  }
  static Won win(Store& store, const std::string& key) { return std::get<Won>(Verbs(store).claim(a_claim(key, "a"))); }

  // `play(scene, end, begin)` calls `begin` after its preparation, to arm the fault. Each execution moves the fault one
  // point further and alternates the transaction's end.
  void walk_beside(auto play) {
    const auto state_after = [&](End end, auto begin) {
      const auto scene = set_scene();
      play(*scene, end, begin);
      EXPECT_EQ(admin_.ask_one(kMiscounted), "0");
      return admin_.ask_one(kSnapshot);
    };
    const auto nothing = [] {};
    const std::string undisturbed[] = {state_after(kEnds[0], nothing), state_after(kEnds[1], nothing)};
    ASSERT_FALSE(HasFailure());
    std::size_t which = 0;
    const auto once_more = [&](std::uint64_t n) {
      which = 1 - which;
      EXPECT_EQ(state_after(kEnds[which], [&] { arm(n); }), undisturbed[which]) << kEnds[which];
    };
    const auto struck = walk(once_more, GetParam().stride, GetParam().faults.front().after);
    EXPECT_GT(struck, 2u);
  }

  FiftyfoldClock fiftyfold_;
  FastClock fast_;
  Clock* host_ = &fiftyfold_;  // the stores' clock for delays
  SystemRandom random_;
  bool is_migrated_ = false;
};

INSTANTIATE_TEST_SUITE_P(Of, ContentionWalk, testing::ValuesIn(ContentionWalk::kinds()), PgWalk::name);

// Only its transaction sees the new dead letter: the store detects it by an insert that it rolls back.
TEST_P(ContentionWalk, NewDeadLetterIsInsertedOnce) {
  walk_beside([&](Scene& scene, End end, auto begin) {
    const Won users = win(*scene.other, "users"), own = win(*scene.other, "own");
    scene.blocker.execute("BEGIN; SELECT latchkey.fail_run(" + name(users) + ", 'm', retryable => false)");
    begin();
    const auto settled = std::get<Settled>(while_locked(
        scene, end, [&] { return scene.verbs().settle({{}, own.run.id(), own.fence, permanent("of the store")}); }));
    EXPECT_TRUE(settled.changed);
    EXPECT_TRUE(settled.dead_letter);
    const auto again = scene.verbs().settle({{}, own.run.id(), own.fence, permanent("of the store")});
    EXPECT_FALSE(std::get<Settled>(again).changed);
  });
}

// There are so many contended keys that the store probes the tenant's new keys before it inserts them.
TEST_P(ContentionWalk, ManyKeysAreClaimedOnce) {
  constexpr auto kQuarantineThreshold = pg::ContendedKeys::kQuarantineThreshold + 1;
  host_ = &fast_;  // with the fiftyfold clock the quarantine would end before the next claim
  walk_beside([&](Scene& scene, End end, auto begin) {
    scene.blocker.execute("BEGIN; SELECT latchkey.begin_run('f', 'contended' || i) FROM generate_series(1, " +
                          std::to_string(kQuarantineThreshold) + ") i");
    begin();
    std::vector<std::future<Result<ClaimReply>>> replies;
    const auto ask = [&](const std::string& key) {
      ClaimRequest request = a_claim(key, "a");
      request.fingerprint.reset();
      auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
      replies.push_back(promise->get_future());
      scene.store->claim(request, [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    };
    while_locked(scene, end, [&] {
      for (std::size_t i = 1; i <= kQuarantineThreshold; ++i) ask("contended" + std::to_string(i));
      for (const char* key : {"one", "two", "three"}) {
        ask(key);
        EXPECT_TRUE(std::holds_alternative<Won>(replies.back().get().value())) << key;
        replies.pop_back();
      }
      for (auto& reply : replies) reply.wait();
      return 0;
    });
    const bool is_committed = end == kEnds[0];
    for (auto& reply : replies) EXPECT_EQ(std::holds_alternative<Busy>(reply.get().value()), is_committed);
  });
}

// A sweep skips runs whose dead letter a user is acknowledging, and handles the others.
TEST_P(ContentionWalk, SweepSkipsContendedRuns) {
  walk_beside([&](Scene& scene, End end, auto begin) {
    Verbs other(*scene.other);
    const auto add = [&](const std::string& tenant, std::uint32_t retries, std::uint32_t count) {
      other.enqueue_all({count, EnqueueRequest{.tenant = tenant, .function = "f", .retry = {.retries = retries}}});
    };
    const auto take = [&](const std::string& tenant, Duration lease) {
      return other.take({.tenant = tenant, .functions = {"f"}, .limit = 100, .session = id_of(5), .lease = lease});
    };
    const Won first = win(*scene.other, "first");
    const auto letter = *std::get<Settled>(other.settle({{}, first.run.id(), first.fence, permanent()})).dead_letter;
    // Runs at their last attempt, in rows of their own, and at their only attempt, in a block.
    add("a", 1, kInRows);
    for (const Taken& each : take("a", 1h)) other.settle({{}, each.run.id(), each.fence, retryable()});
    scene.clock.advance(1min);
    add("a", 0, kInBlock);
    ASSERT_EQ(take("a", 1h).size(), kLast);
    add("b", 3, 3);
    ASSERT_EQ(take("b", 2h).size(), 3u);
    scene.clock.advance(3h);
    scene.blocker.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry('" + to_string(letter) + "', 'ada')");
    begin();
    EXPECT_EQ(scene.verbs().sweep(kLast + 1).changed + scene.verbs().sweep(kLast + 1).changed, 3u);
    EXPECT_EQ(scene.other->stats().value().queued, 3u);
    scene.blocker.execute(end);
    // Sweeps repeatedly, as the engine does, until the store retries the deferred runs.
    std::uint32_t changed = 0;
    for (const Duration patience = clock_.elapsed() + 10s; changed < kLast && clock_.elapsed() < patience;)
      changed += scene.verbs().sweep().changed;
    EXPECT_EQ(changed, kLast);
    EXPECT_EQ(scene.verbs().sweep().changed, 0u);
  });
}

// The store locks the run heads to count duplicates. A user has locked one of them, and another store counts, too.
TEST_P(ContentionWalk, DuplicatesAreCountedOnce) {
  walk_beside([&](Scene& scene, End end, auto begin) {
    const RunId one = win(*scene.other, "one").run.id(), two = win(*scene.other, "two").run.id();
    const auto count = [&](Store& store, std::uint64_t more) {
      std::vector<DuplicateNote> notes;
      for (const RunId& run : {one, two, id_of(99)})
        notes.push_back({run, {.counts = {{"REPLAYED", more, kNoon, kNoon}}, .latest = {}}});
      await<std::monostate>([&](auto done) { store.note_duplicates(notes, std::move(done)); });
    };
    count(*scene.other, 100);
    scene.blocker.execute("BEGIN; SET LOCAL ROLE NONE; SELECT seq FROM latchkey.runs WHERE key = 'two' FOR UPDATE");
    begin();
    while_locked(scene, end, [&] {
      auto users = std::async(std::launch::async, [&] { count(*scene.other, 20); });
      count(*scene.store, 3);
      users.get();
      return 0;
    });
    for (const RunId& run : {one, two})
      EXPECT_EQ(scene.other->find_duplicates(run).value().value().counts.at(0).count, 123u);
  });
}

}  // namespace
}  // namespace latchkey
