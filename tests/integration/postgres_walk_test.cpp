// The fault walk on PostgreSQL: one story of everything that a store does, with its connection cut about the nth
// COMMIT, for every n to its end. Every answer, and all that the database holds, is what an undisturbed store has.
#include <spdlog/spdlog.h>

#include "integration/pg_stores.hpp"
#include "integration/pg_story.hpp"
#include "store/memory/memory_store.hpp"
#include "support/fault_proxy.hpp"
#include "support/stride.hpp"

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

struct NamedFaults {
  const char* name;
  std::deque<Fault> faults;  // the first of them at the nth COMMIT, the next at those after it
  std::uint64_t stride = 1;  // of n: those that take longest go in longer steps
};
void PrintTo(const NamedFaults& faults, std::ostream* out) { *out << faults.name; }

// Where two tales part.
std::string compare(const std::vector<std::string>& told, const std::vector<std::string>& expected) {
  const auto [here, there] = std::ranges::mismatch(told, expected);
  if (here == told.end() && there == expected.end()) return "";
  return (here == told.end() ? "(the end)" : *here) + "\ninstead of\n" +
         (there == expected.end() ? "(the end)" : *there);
}

class PostgresWalk : public PostgresStores, public testing::WithParamInterface<NamedFaults> {
 protected:
  PostgresWalk() { spdlog::set_level(spdlog::level::off); }
  ~PostgresWalk() override { spdlog::set_level(spdlog::level::info); }

  // From the beginning, on an empty database; `before` it begins.
  std::vector<std::string> tell(auto before) {
    ManualClock clock{kNoon};
    if (is_set_up_) PgServer::empty(url());
    is_set_up_ = true;
    auto store = open(proxy_.url(database()), {.lanes = 1, .clock = &clock});
    before();
    return Story(*store, clock, [this] { return PgClient(url()).ask_one(kAll); }).tell();
  }

  bool is_set_up_ = false;
  FaultProxy proxy_{PgServer::instance().port()};
};

INSTANTIATE_TEST_SUITE_P(
    Of, PostgresWalk,
    testing::Values(NamedFaults{"CommitNotSent", {{FaultAt::commit_asked, FaultHow::close}}},
                    NamedFaults{"CommitNotAnswered", {{FaultAt::commit_answered, FaultHow::close}}},
                    // And then the question whether it was kept, before it arrives and after it was answered.
                    NamedFaults{"CommitNotAnsweredNorFound",
                                {{FaultAt::commit_answered, FaultHow::reset},
                                 {FaultAt::commit_asked, FaultHow::reset},
                                 {FaultAt::commit_answered, FaultHow::close}},
                                3},
                    NamedFaults{"CommitLate",
                                {{FaultAt::flight_asked, FaultHow::late, 0, Fault::kWithTheNext},
                                 {FaultAt::commit_asked, FaultHow::close}},
                                3}),
    [](const auto& faults) { return std::string(faults.param.name); });

TEST_P(PostgresWalk, EveryCommit) {
  const auto undisturbed = tell([] {});
  ASSERT_GT(undisturbed.size(), 100u);
  std::uint64_t n = 0;
  for (;; n += kStride * GetParam().stride) {
    const auto fired = proxy_.fired();
    std::deque<Fault> faults = GetParam().faults;
    faults.front().after = n;
    const auto told = tell([&] { proxy_.arm(faults); });
    const bool struck = proxy_.fired() > fired;
    proxy_.arm(std::deque<Fault>{});
    ASSERT_EQ(compare(told, undisturbed), "") << "cut about COMMIT " << n;
    if (!struck) break;
  }
  EXPECT_GT(n, 50u) << "the story commits after each step";
}

// What is compared with is right: the store in memory answers the same.
class PostgresStory : public PostgresStores {};
TEST_F(PostgresStory, IsTheOneOfMemory) {
  const auto nothing = [] { return std::string(); };
  SeededRandom random(1);
  ManualClock clock_of_memory{kNoon}, clock{kNoon};
  MemoryStore memory(clock_of_memory, random);
  const auto expected = Story(memory, clock_of_memory, nothing).tell();
  const auto store = open(url(), {.clock = &clock});
  EXPECT_EQ(compare(Story(*store, clock, nothing).tell(), expected), "");
}

}  // namespace
}  // namespace latchkey
