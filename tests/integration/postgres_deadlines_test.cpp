// A host that dies leaves its leases behind: another that has nothing to do itself must hear of them.
#include <thread>

#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"

namespace latchkey {
namespace {

using PostgresDeadlines = PostgresStores;

TEST_F(PostgresDeadlines, AnIdleHostEndsTheLeasesOfADeadOne) {
  auto idle = open(url());
  {
    auto dying = open(url());
    for (int i = 0; i < 3; ++i) Verbs(*dying).enqueue({.function = "f"});
    EXPECT_EQ(Verbs(*dying).take({.functions = {"f"}, .limit = 9, .session = id_of(1), .lease = 1s}).size(), 3u);
  }
  std::optional<Instant> deadline;
  for (int looks = 0; looks < 100 && !deadline; ++looks) {
    std::this_thread::sleep_for(100ms);
    deadline = idle->next_deadline();
  }
  ASSERT_TRUE(deadline) << "nobody will end these leases";
  while (idle->now() < *deadline) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(Verbs(*idle).sweep(100).changed, 3u);
  EXPECT_EQ(idle->census().value().queued, 3u);
}

}  // namespace
}  // namespace latchkey
