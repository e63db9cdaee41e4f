#include "store/ready_index.hpp"

#include <gtest/gtest.h>

#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;
using ARun = latchkey::Run;

ARun job(std::uint64_t number, Instant due_at, std::int32_t priority = 0, std::string tenant = "default",
         std::string function = "f") {
  RunHead head = a_head();
  head.id = id_of(number);
  head.priority = priority;
  head.tenant = std::move(tenant);
  head.function = std::move(function);
  return a_job_run(Queued{due_at}, head);
}

TakeRequest take(std::uint32_t limit = 100) { return {.functions = {"f"}, .limit = limit}; }

TEST(ReadyIndex, OrdersByPriorityThenDueTimeThenAge) {
  ReadyIndex ready_index;
  ready_index.add(job(5, kNoon - 1s, 0));
  ready_index.add(job(4, kNoon - 2s, 0));
  ready_index.add(job(3, kNoon - 1s, 0));
  ready_index.add(job(2, kNoon, 10));
  ready_index.add(job(1, kNoon, -10));
  EXPECT_EQ(ready_index.ready(take(), kNoon), (std::vector{id_of(2), id_of(4), id_of(3), id_of(5), id_of(1)}));
  EXPECT_EQ(ready_index.ready(take(2), kNoon), (std::vector{id_of(2), id_of(4)}));
  EXPECT_TRUE(ready_index.ready(take(0), kNoon).empty());
}

TEST(ReadyIndex, FunctionsAndTenantsShareOneOrder) {
  ReadyIndex ready_index;
  ready_index.add(job(1, kNoon, 1, "a"));
  ready_index.add(job(2, kNoon, 2, "b"));
  ready_index.add(job(3, kNoon, 3, "a", "g"));
  ready_index.add(job(4, kNoon, 4, "b", "other"));
  TakeRequest both{.functions = {"g", "f", "f"}, .limit = 10};
  EXPECT_EQ(ready_index.ready(both, kNoon), (std::vector{id_of(3), id_of(2), id_of(1)}));
  both.tenant = "a";
  EXPECT_EQ(ready_index.ready(both, kNoon), (std::vector{id_of(3), id_of(1)}));
}

TEST(ReadyIndex, OnlyDueJobsThatWereNotRemovedAreReady) {
  ReadyIndex ready_index;
  const ARun soon = job(1, kNoon), later = job(2, kNoon + 1h);
  ready_index.add(soon);
  ready_index.add(later);
  EXPECT_TRUE(ready_index.ready(take(), kNoon - 1ms).empty());
  EXPECT_EQ(ready_index.ready(take(), kNoon), std::vector{id_of(1)});
  EXPECT_EQ(ready_index.jobs(), 2u);
  ready_index.remove(soon);
  ready_index.remove(later);
  EXPECT_EQ(ready_index.jobs(), 0u);
  EXPECT_TRUE(ready_index.ready(take(), kNoon + 2h).empty());
}

TEST(ReadyIndex, HasOnlyJobsThatAWorkerMayTake) {
  ReadyIndex ready_index;
  ARun waiting = job(1, kNoon);
  waiting.waiting_for = 1;
  ready_index.add(waiting);
  ready_index.add(a_run(Queued{kNoon}));  // claimed: its caller starts the next attempt
  ready_index.add(a_job_run(Completed{kNoon, ""}));
  EXPECT_EQ(ready_index.jobs(), 0u);
  EXPECT_TRUE(ready_index.ready(take(), kNoon + 1h).empty());
}

TEST(ReadyIndex, OverdueRunsAreInDeadlineOrder) {
  ReadyIndex ready_index;
  const auto running = [](std::uint64_t number, Instant until) {
    RunHead head = a_head();
    head.id = id_of(number);
    return a_job_run(Running{.lease_until = until}, head);
  };
  EXPECT_FALSE(ready_index.next_deadline());
  const ARun first = running(2, kNoon);
  ready_index.add(running(1, kNoon + 1s));
  ready_index.add(first);
  EXPECT_EQ(ready_index.next_deadline(), kNoon);
  EXPECT_TRUE(ready_index.overdue(kNoon - 1ms, 10).empty());
  EXPECT_EQ(ready_index.overdue(kNoon, 10), std::vector{id_of(2)});
  EXPECT_EQ(ready_index.overdue(kNoon + 1s, 10), (std::vector{id_of(2), id_of(1)}));
  EXPECT_EQ(ready_index.overdue(kNoon + 1s, 1), std::vector{id_of(2)});
  ready_index.remove(first);
  EXPECT_EQ(ready_index.next_deadline(), kNoon + 1s);
  ready_index.clear();
  EXPECT_FALSE(ready_index.next_deadline());
}

}  // namespace
}  // namespace latchkey
