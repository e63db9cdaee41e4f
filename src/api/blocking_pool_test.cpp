#include "api/blocking_pool.hpp"

#include <gtest/gtest.h>

#include <future>
#include <list>
#include <optional>

#include "base/time.hpp"

namespace latchkey::api {
namespace {

using namespace std::chrono_literals;

// A job that signals its start and end, and runs until its gate opens.
class GatedJob {
 public:
  explicit GatedJob(std::shared_future<void> gate = {}) : gate_(std::move(gate)) {}
  Job job(std::string queue = "a") {
    return {std::move(queue),
            [this] {
              begun_.set_value();
              if (gate_.valid()) gate_.wait();
              ended_.set_value(std::nullopt);
            },
            [this](const Error& why) { ended_.set_value(why.code); }};
  }
  bool has_begun_within(Duration span) { return begins_.wait_for(span) == std::future_status::ready; }
  bool has_ended() { return ends_.wait_for(0s) == std::future_status::ready; }
  // Returns no code if the job was done, or the code with which it was refused.
  std::optional<Code> wait() { return ends_.get(); }

 private:
  const std::shared_future<void> gate_;
  std::promise<void> begun_;
  std::promise<std::optional<Code>> ended_;
  std::future<void> begins_ = begun_.get_future();
  std::future<std::optional<Code>> ends_ = ended_.get_future();
};

class BlockingPoolTest : public ::testing::Test {
 protected:
  // Opens the gate for tests that end early by a failed assertion.
  ~BlockingPoolTest() override {
    open_gate();
    pool_.reset();
  }
  BlockingPool& open(unsigned threads, std::size_t waiting_max = 100) { return pool_.emplace(threads, waiting_max); }
  GatedJob* slow() { return &jobs_.emplace_back(gate_); }
  GatedJob* quick() { return &jobs_.emplace_back(); }
  // Lets the slow jobs end.
  void open_gate() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }

 private:
  bool is_open_ = false;
  std::promise<void> opened_;
  const std::shared_future<void> gate_ = opened_.get_future().share();
  std::list<GatedJob> jobs_;
  std::optional<BlockingPool> pool_;
};

constexpr Duration kPatience = 20s;

TEST_F(BlockingPoolTest, CloseDoesWaitingJobs) {
  BlockingPool& pool = open(1);
  GatedJob *const first = slow(), *const second = slow();
  pool.post(first->job());
  pool.post(second->job());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  auto closed = std::async(std::launch::async, [&] { pool.close(); });
  open_gate();
  closed.get();
  EXPECT_EQ(first->wait(), std::nullopt);
  EXPECT_EQ(second->wait(), std::nullopt);
}

TEST_F(BlockingPoolTest, RefuseAllRefusesWaitingJobs) {
  BlockingPool& pool = open(1);
  GatedJob *const first = slow(), *const second = slow(), *const late = slow();
  pool.post(first->job());
  pool.post(second->job());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  pool.refuse_all();
  ASSERT_TRUE(second->has_ended()) << "although the first job still runs";
  EXPECT_EQ(second->wait(), Code::SHUTTING_DOWN);
  pool.post(late->job());
  ASSERT_TRUE(late->has_ended());
  EXPECT_EQ(late->wait(), Code::SHUTTING_DOWN);
  EXPECT_FALSE(first->has_ended());
  open_gate();
  pool.close();
  EXPECT_EQ(first->wait(), std::nullopt);
}

TEST_F(BlockingPoolTest, FullQueueRefuses) {
  BlockingPool& pool = open(1, 4);
  GatedJob *const first = slow(), *const second = slow(), *const third = slow(), *const fourth = slow();
  pool.post(first->job());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  for (GatedJob* gated : {second, third, fourth}) pool.post(gated->job());
  ASSERT_TRUE(fourth->has_ended());
  EXPECT_EQ(fourth->wait(), Code::OVERLOADED);
  GatedJob* const other = quick();
  pool.post(other->job("b"));
  EXPECT_FALSE(other->has_ended()) << "another queue has room";
  open_gate();
  EXPECT_EQ(third->wait(), std::nullopt);
}

// For example one tenant's slow lists and slow metrics.
TEST_F(BlockingPoolTest, TwoQueuesNeverOccupyAllThreads) {
  for (const unsigned threads : {3U, 4U, 8U}) {
    std::promise<void> opened;
    const std::shared_future<void> gate = opened.get_future().share();
    std::list<GatedJob> slow_ones, quick_ones;
    BlockingPool pool(threads);
    for (int i = 0; i < 20; ++i) {
      slow_ones.emplace_back(gate);
      pool.post(slow_ones.back().job(i % 2 == 0 ? "a" : "/metrics"));
    }
    for (int i = 0; i < 10; ++i) {
      pool.post(quick_ones.emplace_back().job("b"));
      EXPECT_TRUE(quick_ones.back().has_begun_within(kPatience)) << "blocked by other queues, threads: " << threads;
    }
    // By now each slow queue occupies its share of the threads.
    auto one = slow_ones.begin();
    for (unsigned started = 0; started < (threads - 1) / 2 * 2; ++started, ++one)
      EXPECT_TRUE(one->has_begun_within(kPatience)) << started << " of " << threads;
    EXPECT_FALSE(one->has_begun_within(0s)) << threads;
    opened.set_value();
    pool.close();
    for (GatedJob& each : slow_ones) EXPECT_EQ(each.wait(), std::nullopt);
  }
}

// Three queues occupy all threads and have more jobs waiting. The next free thread serves the fourth queue.
TEST_F(BlockingPoolTest, QueueWithFewestRunningJobsIsNext) {
  BlockingPool& pool = open(6);
  std::promise<void> of_one;
  GatedJob one(of_one.get_future().share());
  GatedJob* const fourth = quick();
  std::vector<GatedJob*> others;
  pool.post(one.job("a"));
  for (int i = 0; i < 20; ++i) {
    others.push_back(slow());
    pool.post(others.back()->job(i % 3 == 0 ? "b" : i % 3 == 1 ? "c" : "a"));
  }
  for (const std::size_t started : {0, 1, 2, 3, 4}) ASSERT_TRUE(others[started]->has_begun_within(kPatience));
  pool.post(fourth->job("d"));
  of_one.set_value();
  EXPECT_EQ(one.wait(), std::nullopt);
  EXPECT_TRUE(fourth->has_begun_within(kPatience)) << "blocked by the waiting jobs of other queues";
  open_gate();
  for (GatedJob* other : others) EXPECT_EQ(other->wait(), std::nullopt);
}

// Holds with one thread too, although one queue posted all of its jobs first.
TEST_F(BlockingPoolTest, QueuesTakeTurns) {
  BlockingPool& pool = open(1);
  std::string order;
  GatedJob* const first = slow();
  pool.post(first->job("x"));
  ASSERT_TRUE(first->has_begun_within(kPatience));
  for (const char* queue : {"b", "b", "b", "a", "c", "c"})
    pool.post({queue, [&order, queue] { order += queue; }, [](const Error&) {}});
  open_gate();
  pool.close();
  EXPECT_EQ(order, "bacbcb");
}

}  // namespace
}  // namespace latchkey::api
