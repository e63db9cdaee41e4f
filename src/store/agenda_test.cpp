#include "store/agenda.hpp"

#include <gtest/gtest.h>

#include "support/standings.hpp"

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

TEST(Agenda, OrdersByPriorityThenDueTimeThenAge) {
  Agenda agenda;
  agenda.add(job(5, kNoon - 1s, 0));
  agenda.add(job(4, kNoon - 2s, 0));
  agenda.add(job(3, kNoon - 1s, 0));
  agenda.add(job(2, kNoon, 10));
  agenda.add(job(1, kNoon, -10));
  EXPECT_EQ(agenda.ready(take(), kNoon), (std::vector{id_of(2), id_of(4), id_of(3), id_of(5), id_of(1)}));
  EXPECT_EQ(agenda.ready(take(2), kNoon), (std::vector{id_of(2), id_of(4)}));
  EXPECT_TRUE(agenda.ready(take(0), kNoon).empty());
}

TEST(Agenda, MergesLanesInOneOrder) {
  Agenda agenda;
  agenda.add(job(1, kNoon, 1, "a"));
  agenda.add(job(2, kNoon, 2, "b"));
  agenda.add(job(3, kNoon, 3, "a", "g"));
  agenda.add(job(4, kNoon, 4, "b", "other"));
  TakeRequest both{.functions = {"g", "f", "f"}, .limit = 10};
  EXPECT_EQ(agenda.ready(both, kNoon), (std::vector{id_of(3), id_of(2), id_of(1)}));
  both.tenant = "a";
  EXPECT_EQ(agenda.ready(both, kNoon), (std::vector{id_of(3), id_of(1)}));
}

TEST(Agenda, WaitsUntilAJobIsDueAndForgetsWhatIsRemoved) {
  Agenda agenda;
  const ARun soon = job(1, kNoon), later = job(2, kNoon + 1h);
  agenda.add(soon);
  agenda.add(later);
  EXPECT_TRUE(agenda.ready(take(), kNoon - 1ms).empty());
  EXPECT_EQ(agenda.ready(take(), kNoon), std::vector{id_of(1)});
  EXPECT_EQ(agenda.jobs(), 2u);
  agenda.remove(soon);
  agenda.remove(later);
  EXPECT_EQ(agenda.jobs(), 0u);
  EXPECT_TRUE(agenda.ready(take(), kNoon + 2h).empty());
}

TEST(Agenda, HoldsOnlyWhatAWorkerMayTake) {
  Agenda agenda;
  ARun waiting = job(1, kNoon);
  waiting.waiting_for = 1;
  agenda.add(waiting);
  agenda.add(a_run(Queued{kNoon}));  // claimed: waits for its caller
  agenda.add(a_job_run(Completed{kNoon, ""}));
  EXPECT_EQ(agenda.jobs(), 0u);
  EXPECT_TRUE(agenda.ready(take(), kNoon + 1h).empty());
}

TEST(Agenda, KnowsWhatIsOverdue) {
  Agenda agenda;
  const auto running = [](std::uint64_t number, Instant until) {
    RunHead head = a_head();
    head.id = id_of(number);
    return a_job_run(Running{.lease_until = until}, head);
  };
  EXPECT_FALSE(agenda.next_deadline());
  const ARun first = running(2, kNoon);
  agenda.add(running(1, kNoon + 1s));
  agenda.add(first);
  EXPECT_EQ(agenda.next_deadline(), kNoon);
  EXPECT_TRUE(agenda.overdue(kNoon - 1ms, 10).empty());
  EXPECT_EQ(agenda.overdue(kNoon, 10), std::vector{id_of(2)});
  EXPECT_EQ(agenda.overdue(kNoon + 1s, 10), (std::vector{id_of(2), id_of(1)}));
  EXPECT_EQ(agenda.overdue(kNoon + 1s, 1), std::vector{id_of(2)});
  agenda.remove(first);
  EXPECT_EQ(agenda.next_deadline(), kNoon + 1s);
  agenda.clear();
  EXPECT_FALSE(agenda.next_deadline());
}

}  // namespace
}  // namespace latchkey
