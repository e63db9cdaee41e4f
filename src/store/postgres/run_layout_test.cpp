#include "store/postgres/run_layout.hpp"

#include <gtest/gtest.h>

#include "model/decide.hpp"
#include "pg/dsn.hpp"

namespace latchkey::pg {
namespace {

using namespace std::chrono_literals;

const Instant kNow = from_ms(1'770'000'000'000);

std::shared_ptr<const RunHead> head_of(std::uint64_t counter) {
  auto head = std::make_shared<RunHead>();
  head->id = make_uuid_v7(kNow, counter, 7);
  head->tenant = "acme";
  head->function = "f";
  head->priority = 3;
  return head;
}

struct Run queued() { return start_queued(head_of(41), kNow + 5s, 0); }
struct Run taken(struct Run run) {
  TakeRequest request;
  request.session = make_uuid_v7(kNow, 1, 1);
  return *decide_take(run, request, Fence{1000}, kNow + 6s);
}
struct Run completed(const struct Run& run) {
  const SettleRequest request{.id = run.id(), .fence = run.fence, .ending = Complete{"r", {}}};
  return *decide_settle(run, request, Dice{0.0}, kNow + 7s).next;
}

void expect_same(const struct Run& is, const struct Run& was) {
  EXPECT_EQ(is.id(), was.id());
  EXPECT_EQ(is.origin, was.origin);
  EXPECT_EQ(is.generation, was.generation);
  EXPECT_EQ(is.attempt, was.attempt);
  EXPECT_EQ(is.attempts_max, was.attempts_max);
  EXPECT_EQ(is.attempts_total, was.attempts_total);
  EXPECT_EQ(is.fence, was.fence);
  EXPECT_EQ(is.first_attempt_at, was.first_attempt_at);
  EXPECT_EQ(is.effect_key, was.effect_key);
  EXPECT_EQ(is.state, was.state);
}

TEST(RunLayout, BlockRestoresItsRuns) {
  for (const struct Run& run : {queued(), taken(queued())}) {
    const auto block = block_of(run);
    ASSERT_TRUE(block);
    expect_same(run_of(run.head, *block), run);
  }
}

TEST(RunLayout, OutcomeRestoresItsRun) {
  const struct Run run = completed(taken(queued()));
  ASSERT_TRUE(is_plain_outcome(run));
  const auto& state = std::get<Completed>(run.state);
  expect_same(run_of(run.head, PlainOutcome{run.fence, run.first_attempt_at, state.at, state.result}), run);
}

TEST(RunLayout, OtherRunsNeedARow) {
  struct Run run = queued();
  run.waiting_for = 1;
  EXPECT_FALSE(block_of(run));
  run = queued();
  run.generation = 2;
  EXPECT_FALSE(block_of(run));
  run = queued();
  run.last_error = "no";
  EXPECT_FALSE(block_of(run));
  run = taken(queued());
  std::get<Running>(run.state).cancel_requested = true;
  EXPECT_FALSE(block_of(run));
  run = taken(queued());
  std::get<Running>(run.state).session = {};
  EXPECT_FALSE(block_of(run));
  run = taken(queued());
  run.attempt = 2;
  EXPECT_FALSE(block_of(run));
  run = completed(taken(queued()));
  EXPECT_FALSE(block_of(run));
  run.attempts_total = 2;
  EXPECT_FALSE(is_plain_outcome(run));
}

TEST(RunLayout, BlocksJoinOnlyEqualStates) {
  const Block one = *block_of(queued());
  Block other = *block_of(start_queued(head_of(42), kNow + 5s, 0));
  EXPECT_TRUE(one.is_like(other));
  other.due_at += 1ms;
  EXPECT_FALSE(one.is_like(other));
  other = *block_of(taken(queued()));
  EXPECT_FALSE(one.is_like(other));
}

TEST(Hosts, EachHostHasItsPort) {
  const auto hosts = split_hosts("postgres://u@a:1,b:2/d?connect_timeout=3");
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_NE(hosts[0].conninfo.find("host='a'"), std::string::npos);
  EXPECT_NE(hosts[1].conninfo.find("host='b'"), std::string::npos);
  EXPECT_NE(hosts[1].conninfo.find("port='2'"), std::string::npos);
  EXPECT_EQ(hosts[1].connect_timeout, 3s);
}

TEST(Hosts, InvalidUrlIsPassedToLibpq) {
  const auto hosts = split_hosts("postgres://u@h:1/d?no_such=1");
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].conninfo, "postgres://u@h:1/d?no_such=1");
}

}  // namespace
}  // namespace latchkey::pg
