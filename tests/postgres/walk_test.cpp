// The fault walk on PostgreSQL: a scenario of every operation, with a fault at its nth COMMIT, for every n to its end.
// Every reply and the whole database are the same as without a fault.
#include "store/memory/memory_store.hpp"
#include "support/postgres/pg_scenario.hpp"
#include "support/postgres/pg_walk.hpp"

namespace latchkey {
namespace {

// The whole database as text. It identifies runs by name; the times are from the scenario's clock.
constexpr const char* kDatabaseText = R"(
WITH names AS (
  SELECT seq, id, function || ':' ||
    convert_from(CASE WHEN key IS NULL OR key LIKE 'follow-up:%' THEN input ELSE key END, 'UTF8') AS name FROM latchkey.runs
)
SELECT string_agg(line, E'\n' ORDER BY line) FROM (
  SELECT concat_ws(' ', 'run', n.name, s.status, s.origin, s.generation, s.attempt, s.attempts_max, s.attempts_total,
    'fence', dense_rank() OVER (ORDER BY s.fence), s.first_attempt_at, 'waits', s.waiting_for, s.failures, 'at', s.at,
    'lease', s.lease_until, s.owner_lease_ms, s.flags, s.owner, 'error', s.last_error, s.last_error_code,
    'fresh', s.effect_key <> n.id, 'result', s.result, s.code, s.effect, 'deadline', s.deadline) AS line
  FROM names n JOIN latchkey.all_states s USING (seq)
  UNION ALL SELECT concat_ws(' ', 'states', (SELECT count(*) FROM latchkey.all_states), 'of', (SELECT count(*) FROM latchkey.runs))
  UNION ALL SELECT concat_ws(' ', 'outcome of', coalesce(n.name, 'none'))
    FROM latchkey.outcomes o CROSS JOIN LATERAL generate_series(o.lo, o.hi) x (seq) LEFT JOIN names n ON n.seq = x.seq
  UNION ALL SELECT concat_ws(' ', 'settlement of', coalesce(n.name, 'none'), t.generation)
    FROM latchkey.settlements t LEFT JOIN names n USING (seq)
  UNION ALL SELECT concat_ws(' ', 'key of', coalesce(n.name, 'none'), r.hash = k.hash)
    FROM latchkey.keys k LEFT JOIN names n USING (seq) LEFT JOIN latchkey.runs r USING (seq)
  UNION ALL SELECT concat_ws(' ', 'wait of', coalesce(d.name, 'none'), 'for', coalesce(p.name, 'none'), w.run = d.id)
    FROM latchkey.waits w LEFT JOIN names p ON p.seq = w.predecessor LEFT JOIN names d ON d.seq = w.dependent
  UNION ALL SELECT concat_ws(' ', 'duplicates of', n.name, d.seen) FROM latchkey.duplicates d LEFT JOIN names n USING (seq)
  UNION ALL SELECT concat_ws(' ', 'letter', l.function, l.code, l.reason, l.count, l.opened_at, l.updated_at, l.acknowledged_at,
    l.acknowledged_by, (SELECT name FROM names WHERE id = l.latest_run)) FROM latchkey.dead_letters l
  UNION ALL SELECT concat_ws(' ', 'member', coalesce(n.name, 'gone'), m.generation, m.key, m.code, m.reason, m.attempts, m.effect, m.at,
    (SELECT opened_at FROM latchkey.dead_letters l WHERE l.number = m.letter))
    FROM latchkey.dead_letter_members m LEFT JOIN names n USING (seq)
  UNION ALL SELECT concat_ws(' ', 'step', coalesce(n.name, 'gone'), t.generation, t.kind, t.actor, t.at, t.note)
    FROM latchkey.dead_letter_steps t LEFT JOIN names n USING (seq)
  UNION ALL SELECT concat_ws(' ', 'tenant', t.name, t.id) FROM latchkey.tenants t
) all_lines)";

// The first difference of two records, or an empty string.
std::string compare(const std::vector<std::string>& actual, const std::vector<std::string>& expected) {
  const auto [here, there] = std::ranges::mismatch(actual, expected);
  if (here == actual.end() && there == expected.end()) return "";
  return (here == actual.end() ? "(the end)" : *here) + "\ninstead of\n" +
         (there == expected.end() ? "(the end)" : *there);
}

class PostgresWalk : public PgWalk {
 protected:
  struct Record {
    std::vector<std::string> lines;
    std::uint64_t commits = 0;  // before the purges
    std::uint32_t purged = 0;
  };
  // Runs the scenario on an empty database, after `before`. With another store, both purge at the same time.
  Record play(auto before, OtherStore with) {
    ManualClock clock{kNoon};
    empty();
    auto store = open_fast(proxy_.url(database()), {.writers = 1, .clock = &clock});
    std::unique_ptr<PostgresStore> other;
    if (with == OtherStore::present) other = open_fast(url(), {.writers = 1, .clock = &clock});
    before();
    Scenario scenario(*store, clock, [this] { return admin_.ask_one(kDatabaseText); }, other.get());
    Record record;
    scenario.before_purges = [&] { record.commits = commits(); };
    record.lines = scenario.run();
    record.purged = scenario.purged;
    return record;
  }
};

INSTANTIATE_TEST_SUITE_P(Of, PostgresWalk, testing::ValuesIn(PgWalk::kinds()), PgWalk::name);

// From the purges on, the other store purges the same slices.
// covers: X3
TEST_P(PostgresWalk, FaultAtAnyCommitChangesNothing) {
  const Record undisturbed = play([] {}, OtherStore::none);
  ASSERT_GT(undisturbed.lines.size(), 100u);
  ASSERT_EQ(compare(play([] {}, OtherStore::present).lines, undisturbed.lines), "") << "with two stores that purge";
  const auto play_with_fault = [&](std::uint64_t n) {
    const auto with = n >= undisturbed.commits ? OtherStore::present : OtherStore::none;
    const Record record = play([&] { arm(n); }, with);
    EXPECT_EQ(compare(record.lines, undisturbed.lines), "");
    if (with == OtherStore::none) {
      EXPECT_EQ(record.purged, undisturbed.purged);
    } else {
      EXPECT_GE(record.purged, undisturbed.purged);
    }
  };
  const bool everywhere = GetParam().where == NamedFaults::Where::everywhere;
  EXPECT_GT(walk(play_with_fault, GetParam().stride, everywhere ? 0 : undisturbed.commits), undisturbed.commits + 3)
      << "the walk did not reach the purges";
  EXPECT_GT(undisturbed.commits, 50u) << "the scenario has too few commits";
}

// The undisturbed replies are correct: the memory store gives the same ones.
class PostgresScenario : public PostgresStores {};
TEST_F(PostgresScenario, RepliesMatchMemoryStore) {
  const auto nothing = [] { return std::string(); };
  SeededRandom random(1);
  ManualClock clock_of_memory{kNoon}, clock{kNoon};
  MemoryStore memory(clock_of_memory, random);
  Scenario expected(memory, clock_of_memory, nothing);
  const auto lines = expected.run();
  const auto store = open(url(), {.clock = &clock});
  Scenario scenario(*store, clock, nothing);
  EXPECT_EQ(compare(scenario.run(), lines), "");
  EXPECT_EQ(scenario.purged, expected.purged);
}

}  // namespace
}  // namespace latchkey
