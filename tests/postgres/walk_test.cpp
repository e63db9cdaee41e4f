// The fault walk on PostgreSQL: one story of everything that a store does, with its connection cut about the nth
// COMMIT, for every n to its end. Every answer, and all that the database holds, is what an undisturbed store has.
#include "store/memory/memory_store.hpp"
#include "support/postgres/pg_story.hpp"
#include "support/postgres/pg_walk.hpp"

namespace latchkey {
namespace {

// By what people call things; times are the story's.
constexpr const char* kAll = R"(
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
  UNION ALL SELECT concat_ws(' ', 'lies in', (SELECT count(*) FROM latchkey.all_states), 'of', (SELECT count(*) FROM latchkey.runs))
  UNION ALL SELECT concat_ws(' ', 'outcome of', coalesce(n.name, 'nobody'))
    FROM latchkey.outcomes o CROSS JOIN LATERAL generate_series(o.lo, o.hi) x (seq) LEFT JOIN names n ON n.seq = x.seq
  UNION ALL SELECT concat_ws(' ', 'settlement of', coalesce(n.name, 'nobody'), t.generation)
    FROM latchkey.settlements t LEFT JOIN names n USING (seq)
  UNION ALL SELECT concat_ws(' ', 'key of', coalesce(n.name, 'nobody'), r.hash = k.hash)
    FROM latchkey.keys k LEFT JOIN names n USING (seq) LEFT JOIN latchkey.runs r USING (seq)
  UNION ALL SELECT concat_ws(' ', 'wait of', coalesce(d.name, 'nobody'), 'for', coalesce(p.name, 'nobody'), w.run = d.id)
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

// Where two tales part.
std::string compare(const std::vector<std::string>& told, const std::vector<std::string>& expected) {
  const auto [here, there] = std::ranges::mismatch(told, expected);
  if (here == told.end() && there == expected.end()) return "";
  return (here == told.end() ? "(the end)" : *here) + "\ninstead of\n" +
         (there == expected.end() ? "(the end)" : *there);
}

class PostgresWalk : public PgWalk {
 protected:
  struct Tale {
    std::vector<std::string> lines;
    std::uint64_t commits = 0;  // before the purges
    std::uint32_t purged = 0;
  };
  // From the beginning, on an empty database; `before` it begins. With company another store purges beside it.
  Tale tell(auto before, Company company) {
    ManualClock clock{kNoon};
    empty();
    auto store = open_hasty(proxy_.url(database()), {.writers = 1, .clock = &clock});
    std::unique_ptr<PostgresStore> other;
    if (company == Company::another) other = open_hasty(url(), {.writers = 1, .clock = &clock});
    before();
    Story story(*store, clock, [this] { return hand_.ask_one(kAll); }, other.get());
    Tale tale;
    story.before_purges = [&] { tale.commits = commits(); };
    tale.lines = story.tell();
    tale.purged = story.purged;
    return tale;
  }
};

INSTANTIATE_TEST_SUITE_P(Of, PostgresWalk, testing::ValuesIn(PgWalk::kinds()), PgWalk::name);

// From the purges on each cut finds the other store amid the same slices.
// covers: X3
TEST_P(PostgresWalk, EveryCommit) {
  const Tale undisturbed = tell([] {}, Company::none);
  ASSERT_GT(undisturbed.lines.size(), 100u);
  ASSERT_EQ(compare(tell([] {}, Company::another).lines, undisturbed.lines), "") << "two that purge";
  const auto told = [&](std::uint64_t n) {
    const auto company = n >= undisturbed.commits ? Company::another : Company::none;
    const Tale tale = tell([&] { arm(n); }, company);
    EXPECT_EQ(compare(tale.lines, undisturbed.lines), "");
    if (company == Company::none) {
      EXPECT_EQ(tale.purged, undisturbed.purged);
    } else {
      EXPECT_GE(tale.purged, undisturbed.purged);
    }
  };
  const bool everywhere = GetParam().where == NamedFaults::Where::everywhere;
  EXPECT_GT(walk(told, GetParam().stride, everywhere ? 0 : undisturbed.commits), undisturbed.commits + 3)
      << "the purges too";
  EXPECT_GT(undisturbed.commits, 50u) << "the story commits after each step";
}

// What is compared with is right: the store in memory answers the same.
class PostgresStory : public PostgresStores {};
TEST_F(PostgresStory, IsTheOneOfMemory) {
  const auto nothing = [] { return std::string(); };
  SeededRandom random(1);
  ManualClock clock_of_memory{kNoon}, clock{kNoon};
  MemoryStore memory(clock_of_memory, random);
  Story expected(memory, clock_of_memory, nothing);
  const auto lines = expected.tell();
  const auto store = open(url(), {.clock = &clock});
  Story story(*store, clock, nothing);
  EXPECT_EQ(compare(story.tell(), lines), "");
  EXPECT_EQ(story.purged, expected.purged);
}

}  // namespace
}  // namespace latchkey
