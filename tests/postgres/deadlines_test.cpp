// A host dies while its workers have leases: an idle host must poll their deadlines and expire them.
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

using PostgresDeadlines = PostgresStores;

TEST_F(PostgresDeadlines, IdleHostExpiresLeasesOfDeadHost) {
  ManualClock time(clock_.now());
  auto idle = open(url(), {.clock = &time});
  {
    auto dying = open(url(), {.clock = &time});
    for (int i = 0; i < 3; ++i) Verbs(*dying).enqueue({.function = "f"});
    EXPECT_EQ(Verbs(*dying).take({.functions = {"f"}, .limit = 9, .session = id_of(1), .lease = 1h}).size(), 3u);
  }
  // The store has no signal for a polled deadline, so the test polls, too.
  const Duration patience = clock_.elapsed() + 10s;
  while (!idle->next_deadline() && clock_.elapsed() < patience) std::this_thread::sleep_for(5ms);
  ASSERT_TRUE(idle->next_deadline()) << "the idle host did not poll the deadlines";
  EXPECT_EQ(*idle->next_deadline(), from_ms(to_ms(time.now() + 1h)));
  EXPECT_EQ(Verbs(*idle).sweep(100).changed, 0u);
  time.advance(1h);
  EXPECT_EQ(Verbs(*idle).sweep(100).changed, 3u);
  EXPECT_EQ(idle->stats().value().queued, 3u);
}

}  // namespace
}  // namespace latchkey
