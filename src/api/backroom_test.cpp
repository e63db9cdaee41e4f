#include "api/backroom.hpp"

#include <gtest/gtest.h>

#include <future>

#include "base/time.hpp"

namespace latchkey::api {
namespace {

using namespace std::chrono_literals;

// An errand that says when it began and lasts until it is let go; and how it ended.
class Visit {
 public:
  explicit Visit(std::shared_future<void> gate = {}) : gate_(std::move(gate)) {}
  Errand errand() {
    return {[this] {
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
  std::unique_ptr<Visit> slow() { return std::make_unique<Visit>(gate_); }
  void let_go() { opened_.set_value(); }

  std::promise<void> opened_;
  const std::shared_future<void> gate_ = opened_.get_future().share();
};

constexpr Duration kPatience = 20s;

TEST_F(BackroomTest, WhatWaitsIsDoneBeforeItCloses) {
  Backroom backroom(1);
  const auto first = slow(), second = slow();
  backroom.post(first->errand());
  backroom.post(second->errand());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  auto closed = std::async(std::launch::async, [&] { backroom.close(); });
  let_go();
  closed.get();
  EXPECT_EQ(first->wait(), std::nullopt);
  EXPECT_EQ(second->wait(), std::nullopt);
}

TEST_F(BackroomTest, WhatHasNotBegunIsRefusedAtOnceWhenAllIs) {
  Backroom backroom(1);
  const auto first = slow(), second = slow(), late = slow();
  backroom.post(first->errand());
  backroom.post(second->errand());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  backroom.refuse_all();
  ASSERT_TRUE(second->has_ended()) << "while the first is not let go";
  EXPECT_EQ(second->wait(), Code::SHUTTING_DOWN);
  backroom.post(late->errand());
  ASSERT_TRUE(late->has_ended());
  EXPECT_EQ(late->wait(), Code::SHUTTING_DOWN);
  EXPECT_FALSE(first->has_ended());
  let_go();
  backroom.close();
  EXPECT_EQ(first->wait(), std::nullopt);
}

TEST_F(BackroomTest, TooMuchIsRefused) {
  Backroom backroom(1, 2);
  const auto first = slow(), second = slow(), third = slow(), fourth = slow();
  backroom.post(first->errand());
  ASSERT_TRUE(first->has_begun_within(kPatience));
  for (const auto* visit : {&second, &third, &fourth}) backroom.post((*visit)->errand());
  ASSERT_TRUE(fourth->has_ended());
  EXPECT_EQ(fourth->wait(), Code::TOO_MANY_REQUESTS);
  let_go();
  EXPECT_EQ(third->wait(), std::nullopt);
}

}  // namespace
}  // namespace latchkey::api
