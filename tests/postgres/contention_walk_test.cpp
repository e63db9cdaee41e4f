// The fault walk beside somebody's open transaction: it makes or holds what the store needs (a dead letter, the heads
// of runs that are counted), while the store finds that out, leaves it out, puts it aside and asks again. The store's
// connections are cut about every round trip of that and every COMMIT; all is as if they had not been.
#include "support/postgres/pg_walk.hpp"

namespace latchkey {
namespace {

// Fifty times as fast as the machine: what is held is looked at again five times a second, and left out for a whole
// one.
class FastClock final : public Clock {
 public:
  static constexpr int kTimes = 50;
  Instant now() override { return real_.now(); }
  Duration elapsed() override { return real_.elapsed() * kTimes; }
  Task<void> wait(Duration span) override { return real_.wait(span / kTimes); }

 private:
  SystemClock real_;
};

// Without times: SQL functions go by the database's.
constexpr const char* kSeen = R"(
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
  UNION ALL SELECT concat_ws(' ', 'duplicates of', coalesce(n.name, 'nobody'), encode(d.seen, 'hex'))
    FROM latchkey.duplicates d LEFT JOIN names n USING (seq)
) lines)";

// Dead letters that do not say how many they are.
constexpr const char* kMiscounted =
    "SELECT count(*) FROM latchkey.dead_letters l WHERE l.count <> (SELECT count(*) FROM latchkey.dead_letter_members "
    "m "
    "WHERE m.dead_letter = l.number)";

class PostgresHeldWalk : public PgWalk {
 public:
  static std::vector<NamedFaults> kinds() {
    // Beyond the first few they are alike: some of them, from each kind other ones.
    return {{"TripNotSent", {{FaultAt::trip_asked, FaultHow::close}}, 3},
            {"TripNotAnswered", {{FaultAt::trip_answered, FaultHow::reset, 1}}, 3},
            {"CommitNotSent", {{FaultAt::commit_asked, FaultHow::close}}, 2},
            {"CommitNotAnsweredNorFound",
             {{FaultAt::commit_answered, FaultHow::reset},
              {FaultAt::commit_asked, FaultHow::reset},
              {FaultAt::commit_answered, FaultHow::close}},
             3},
            {"CommitLate",
             {{FaultAt::flight_asked, FaultHow::late, 1, ConnectionFault::kWithTheNext},
              {FaultAt::commit_asked, FaultHow::close}},
             3}};
  }

 protected:
  static constexpr std::uint32_t kInBlock = 4, kInRows = 2, kHeld = kInBlock + kInRows;
  // So many round trips find out what is held, and look again.
  static constexpr std::uint64_t kTrips = 24;
  // How the transaction ends.
  using End = const char*;
  static constexpr End kEnds[] = {"COMMIT", "ROLLBACK"};

  struct Scene {
    explicit Scene(const std::string& url) : holder(url) {}
    ManualClock clock{kNoon};
    std::unique_ptr<PostgresStore> store;  // that is cut
    std::unique_ptr<PostgresStore> other;
    PgClient holder;

    Verbs verbs() const { return Verbs(*store); }
  };
  std::unique_ptr<Scene> set_scene() {
    empty();
    auto scene = std::make_unique<Scene>(url());
    const auto open = [&](const std::string& at) {
      PostgresSettings settings{.url = at, .writers = 1, .clock = &scene->clock, .patience = FastClock::kTimes * 10s};
      if (std::exchange(is_migrated_, true)) return PostgresStore::open(std::move(settings), *host_, random_).value();
      return migrate::open_postgres(std::move(settings), *host_, random_).value();
    };
    scene->store = open(proxy_.url(database()));
    scene->other = open(url());
    scene->holder.execute(
        "INSERT INTO latchkey.members VALUES ('a', 'ada', 'org-admin') ON CONFLICT DO NOTHING; "
        "SET app.current_tenant = 'a'; SET app.current_actor = 'ada'");
    return scene;
  }
  // What `act` does meanwhile is held up until the transaction ends, which is when much has gone to and fro.
  auto while_held(Scene& scene, End end, auto act) {
    const std::uint64_t from = proxy_.trips();
    auto held = std::async(std::launch::async, act);
    while (proxy_.trips() < from + kTrips && held.wait_for(1ms) != std::future_status::ready) {
    }
    EXPECT_NE(held.wait_for(0s), std::future_status::ready) << "it was not held up";
    // Nothing else is.
    EXPECT_TRUE(std::holds_alternative<Won>(scene.verbs().claim(a_claim("free"))));
    scene.holder.execute(end);
    return held.get();
  }
  static std::string name(const Won& own) {
    return "'" + to_string(own.run.id()) + "', " + std::to_string(static_cast<std::uint64_t>(own.fence));
  }
  static Won win(Store& store, const std::string& key) { return std::get<Won>(Verbs(store).claim(a_claim(key, "a"))); }

  // `tell(scene, end, begin)` calls `begin` once what leads up to it has happened. Each time one fault further on, now
  // the one end, now the other.
  void walk_beside(auto tell) {
    const auto told = [&](End end, auto begin) {
      const auto scene = set_scene();
      tell(*scene, end, begin);
      EXPECT_EQ(hand_.ask_one(kMiscounted), "0");
      return hand_.ask_one(kSeen);
    };
    const auto nothing = [] {};
    const std::string undisturbed[] = {told(kEnds[0], nothing), told(kEnds[1], nothing)};
    ASSERT_FALSE(HasFailure());
    std::size_t which = 0;
    const auto once_more = [&](std::uint64_t n) {
      which = 1 - which;
      EXPECT_EQ(told(kEnds[which], [&] { arm(n); }), undisturbed[which]) << kEnds[which];
    };
    const auto struck = walk(once_more, GetParam().stride, GetParam().faults.front().after);
    EXPECT_GT(struck, 2u);
  }

  FastClock fast_;
  HastyClock hasty_;
  Clock* host_ = &fast_;  // of the stores
  SystemRandom random_;
  bool is_migrated_ = false;
};

INSTANTIATE_TEST_SUITE_P(Of, PostgresHeldWalk, testing::ValuesIn(PostgresHeldWalk::kinds()), PgWalk::name);

// Nobody can see it yet: the store finds out by making it, too, and undoing that.
TEST_P(PostgresHeldWalk, ALetterThatIsBeingMade) {
  walk_beside([&](Scene& scene, End end, auto begin) {
    const Won theirs = win(*scene.other, "theirs"), own = win(*scene.other, "own");
    scene.holder.execute("BEGIN; SELECT latchkey.fail_run(" + name(theirs) + ", 'm', retryable => false)");
    begin();
    const auto settled = std::get<Settled>(while_held(scene, end, [&] {
      return scene.verbs().settle({{}, own.run.id(), own.fence, permanent("of the store")});
    }));
    EXPECT_TRUE(settled.changed);
    EXPECT_TRUE(settled.dead_letter);
    const auto again = scene.verbs().settle({{}, own.run.id(), own.fence, permanent("of the store")});
    EXPECT_FALSE(std::get<Settled>(again).changed);
  });
}

// So many that the next new key is looked at before it is made.
TEST_P(PostgresHeldWalk, ACrowdOfKeys) {
  constexpr auto kQuarantineThreshold = pg::ContendedKeys::kQuarantineThreshold + 1;
  host_ = &hasty_;  // by the other it would be none any more when the next key is asked for
  walk_beside([&](Scene& scene, End end, auto begin) {
    scene.holder.execute("BEGIN; SELECT latchkey.begin_run('f', 'held' || i) FROM generate_series(1, " +
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
    while_held(scene, end, [&] {
      for (std::size_t i = 1; i <= kQuarantineThreshold; ++i) ask("held" + std::to_string(i));
      for (const char* key : {"one", "two", "three"}) {
        ask(key);
        EXPECT_TRUE(std::holds_alternative<Won>(replies.back().get().value())) << key;
        replies.pop_back();
      }
      for (auto& reply : replies) reply.wait();
      return 0;
    });
    const bool is_kept = end == kEnds[0];
    for (auto& reply : replies) EXPECT_EQ(std::holds_alternative<Busy>(reply.get().value()), is_kept);
  });
}

// Time's work on runs whose dead letter somebody is acknowledging: they are left out, the others are not.
TEST_P(PostgresHeldWalk, ASweepThatLeavesSomeOut) {
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
    // At their last try, in rows of their own, or at their only one, in a block.
    add("a", 1, kInRows);
    for (const Taken& each : take("a", 1h)) other.settle({{}, each.run.id(), each.fence, retryable()});
    scene.clock.advance(1min);
    add("a", 0, kInBlock);
    ASSERT_EQ(take("a", 1h).size(), kHeld);
    add("b", 3, 3);
    ASSERT_EQ(take("b", 2h).size(), 3u);
    scene.clock.advance(3h);
    scene.holder.execute("BEGIN; SELECT latchkey.acknowledge_dlq_entry('" + to_string(letter) + "', 'ada')");
    begin();
    EXPECT_EQ(scene.verbs().sweep(kHeld + 1).changed + scene.verbs().sweep(kHeld + 1).changed, 3u);
    EXPECT_EQ(scene.other->stats().value().queued, 3u);
    scene.holder.execute(end);
    // As the engine does, until what was left out is looked at again.
    std::uint32_t changed = 0;
    for (const Duration patience = clock_.elapsed() + 10s; changed < kHeld && clock_.elapsed() < patience;)
      changed += scene.verbs().sweep().changed;
    EXPECT_EQ(changed, kHeld);
    EXPECT_EQ(scene.verbs().sweep().changed, 0u);
  });
}

// Under the locks of their heads, which somebody has; another server counts the same ones.
TEST_P(PostgresHeldWalk, DuplicatesThatAreCounted) {
  walk_beside([&](Scene& scene, End end, auto begin) {
    const RunId one = win(*scene.other, "one").run.id(), two = win(*scene.other, "two").run.id();
    const auto count = [&](Store& store, std::uint64_t more) {
      std::vector<DuplicateNote> notes;
      for (const RunId& run : {one, two, id_of(99)})
        notes.push_back({run, {.counts = {{"REPLAYED", more, kNoon, kNoon}}, .latest = {}}});
      await<std::monostate>([&](auto done) { store.note_duplicates(notes, std::move(done)); });
    };
    count(*scene.other, 100);
    scene.holder.execute("BEGIN; SET LOCAL ROLE NONE; SELECT seq FROM latchkey.runs WHERE key = 'two' FOR UPDATE");
    begin();
    while_held(scene, end, [&] {
      auto theirs = std::async(std::launch::async, [&] { count(*scene.other, 20); });
      count(*scene.store, 3);
      theirs.get();
      return 0;
    });
    for (const RunId& run : {one, two})
      EXPECT_EQ(scene.other->find_duplicates(run).value().value().counts.at(0).count, 123u);
  });
}

}  // namespace
}  // namespace latchkey
