#include "api/blocking_pool.hpp"

#include <gtest/gtest.h>

#include <future>
#include <list>
#include <optional>

#include "base/time.hpp"

namespace latchkey::api {
namespace {

using namespace std::chrono_literals;

// An errand that says when it began and lasts until it is let go; and how it ended.
class Visit {
 public:
  explicit Visit(std::shared_future<void> gate = {}) : gate_(std::move(gate)) {}
  Job errand(std::string line = "a") {
    return {std::move(line),
            [this] {
              begun_.set_value();
              if (gate_.valid()) gate_.wait();
              ended_.set_value(std::nullopt);
            },
            [this](const Error& why) { ended_.set_value(why.code); }};
  }
  bool has_begun_within(Duration span) { return begins_.wait_for(span) == std::future_status::ready; }
  bool has_ended() { return ends_.wait_for(0s) == std::future_status::ready; }
  // None: it was done.
  std::optional<Code> wait() { return ends_.get(); }

 private:
  const std::shared_future<void> gate_;
  std::promise<void> begun_;
  std::promise<std::optional<Code>> ended_;
  std::future<void> begins_ = begun_.get_future();
  std::future<std::optional<Code>> ends_ = ended_.get_future();
};

class BackroomTest : public ::testing::Test {
 protected:
  // Also when the test has failed amid it.
  ~BackroomTest() override {
    let_go();
    backroom_.reset();
  }
  BlockingPool& open(unsigned threads, std::size_t waiting_max = 100) {
    return backroom_.emplace(threads, waiting_max);
  }
  Visit* slow() { return &visits_.emplace_back(gate_); }
  Visit* quick() { return &visits_.emplace_back(); }
  // The slow ones.
  void let_go() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }

 private:
  bool is_open_ = false;
  std::promise<void> opened_;
  const std::shared_future<void> gate_ = opened_.get_future().share();
  std::list<Visit> visits_;
  std::optional<BlockingPool> backroom_;
};

constexpr Duration kPatience = 20s;

TEST_F(BackroomTest, WhatWaitsIsDoneBeforeItCloses) {
  BlockingPool& blocking_pool = open(1);
  Visit *const first = slow(), *const second = slow();
  blocking_pool.post(first->errand());
  blocking_pool.post(second->errand());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  auto closed = std::async(std::launch::async, [&] { blocking_pool.close(); });
  let_go();
  closed.get();
  EXPECT_EQ(first->wait(), std::nullopt);
  EXPECT_EQ(second->wait(), std::nullopt);
}

TEST_F(BackroomTest, WhatHasNotBegunIsRefusedAtOnceWhenAllIs) {
  BlockingPool& blocking_pool = open(1);
  Visit *const first = slow(), *const second = slow(), *const late = slow();
  blocking_pool.post(first->errand());
  blocking_pool.post(second->errand());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  blocking_pool.refuse_all();
  ASSERT_TRUE(second->has_ended()) << "while the first is not let go";
  EXPECT_EQ(second->wait(), Code::SHUTTING_DOWN);
  blocking_pool.post(late->errand());
  ASSERT_TRUE(late->has_ended());
  EXPECT_EQ(late->wait(), Code::SHUTTING_DOWN);
  EXPECT_FALSE(first->has_ended());
  let_go();
  blocking_pool.close();
  EXPECT_EQ(first->wait(), std::nullopt);
}

TEST_F(BackroomTest, TooMuchIsRefused) {
  BlockingPool& blocking_pool = open(1, 4);
  Visit *const first = slow(), *const second = slow(), *const third = slow(), *const fourth = slow();
  blocking_pool.post(first->errand());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  for (Visit* visit : {second, third, fourth}) blocking_pool.post(visit->errand());
  ASSERT_TRUE(fourth->has_ended());
  EXPECT_EQ(fourth->wait(), Code::OVERLOADED);
  Visit* const other = quick();
  blocking_pool.post(other->errand("b"));
  EXPECT_FALSE(other->has_ended()) << "there is room for another line's";
  let_go();
  EXPECT_EQ(third->wait(), std::nullopt);
}

// However many slow errands they have: one tenant's lists and the metrics, say.
TEST_F(BackroomTest, TwoLinesNeverHaveAllOfTheThreads) {
  for (const unsigned threads : {3U, 4U, 8U}) {
    std::promise<void> opened;
    const std::shared_future<void> gate = opened.get_future().share();
    std::list<Visit> slow_ones, quick_ones;
    BlockingPool blocking_pool(threads);
    for (int i = 0; i < 20; ++i) {
      slow_ones.emplace_back(gate);
      blocking_pool.post(slow_ones.back().errand(i % 2 == 0 ? "a" : "/metrics"));
    }
    for (int i = 0; i < 10; ++i) {
      blocking_pool.post(quick_ones.emplace_back().errand("b"));
      EXPECT_TRUE(quick_ones.back().has_begun_within(kPatience)) << "it waits for other lines', of " << threads;
    }
    // Both have what they may have, by now.
    auto one = slow_ones.begin();
    for (unsigned begun = 0; begun < (threads - 1) / 2 * 2; ++begun, ++one)
      EXPECT_TRUE(one->has_begun_within(kPatience)) << begun << " of " << threads;
    EXPECT_FALSE(one->has_begun_within(0s)) << threads;
    opened.set_value();
    blocking_pool.close();
    for (Visit& each : slow_ones) EXPECT_EQ(each.wait(), std::nullopt);
  }
}

// Three that have taken all threads between them, and have many more: the next that is free is for the fourth.
TEST_F(BackroomTest, TheLineWithTheFewestUnderWayIsNext) {
  BlockingPool& blocking_pool = open(6);
  std::promise<void> of_one;
  Visit one(of_one.get_future().share());
  Visit* const fourth = quick();
  std::vector<Visit*> others;
  blocking_pool.post(one.errand("a"));
  for (int i = 0; i < 20; ++i) {
    others.push_back(slow());
    blocking_pool.post(others.back()->errand(i % 3 == 0 ? "b" : i % 3 == 1 ? "c" : "a"));
  }
  for (const std::size_t begun : {0, 1, 2, 3, 4}) ASSERT_TRUE(others[begun]->has_begun_within(kPatience));
  blocking_pool.post(fourth->errand("d"));
  of_one.set_value();
  EXPECT_EQ(one.wait(), std::nullopt);
  EXPECT_TRUE(fourth->has_begun_within(kPatience)) << "it waits behind the others' many";
  let_go();
  for (Visit* other : others) EXPECT_EQ(other->wait(), std::nullopt);
}

// With one thread, too: each line in turn, though one has come with everything first.
TEST_F(BackroomTest, LinesTakeTurns) {
  BlockingPool& blocking_pool = open(1);
  std::string order;
  Visit* const first = slow();
  blocking_pool.post(first->errand("x"));
  ASSERT_TRUE(first->has_begun_within(kPatience));
  for (const char* line : {"b", "b", "b", "a", "c", "c"})
    blocking_pool.post({line, [&order, line] { order += line; }, [](const Error&) {}});
  let_go();
  blocking_pool.close();
  EXPECT_EQ(order, "bacbcb");
}

}  // namespace
}  // namespace latchkey::api
