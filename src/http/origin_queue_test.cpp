#include "http/origin_queue.hpp"

#include <gtest/gtest.h>

#include <array>

#include "http/outgoing_calls.hpp"

namespace latchkey::http {
namespace {

TEST(OriginQueue, LimitsTheTotal) {
  OriginQueue queue({.total_max = 2, .per_origin_max = 2});
  std::array<OutgoingCall, 3> calls;
  std::array<OriginQueue::Ticket, 3> tickets;
  for (std::size_t i = 0; i < calls.size(); ++i) tickets[i] = queue.push(std::to_string(i), calls[i]);
  EXPECT_EQ(queue.take(), &calls[0]);
  EXPECT_EQ(queue.take(), &calls[1]);
  EXPECT_EQ(queue.take(), nullptr);
  queue.release(tickets[0]);
  EXPECT_EQ(queue.take(), &calls[2]);
}

TEST(OriginQueue, LimitsEachOrigin) {
  OriginQueue queue({.total_max = 10, .per_origin_max = 1});
  std::array<OutgoingCall, 3> calls;
  const auto first = queue.push("a", calls[0]);
  queue.push("a", calls[1]);
  queue.push("b", calls[2]);
  EXPECT_EQ(queue.take(), &calls[0]);
  EXPECT_EQ(queue.take(), &calls[2]);
  EXPECT_EQ(queue.take(), nullptr);
  queue.release(first);
  EXPECT_EQ(queue.take(), &calls[1]);
}

TEST(OriginQueue, OriginsTakeTurns) {
  OriginQueue queue({.total_max = 10, .per_origin_max = 10});
  std::array<OutgoingCall, 4> calls;
  for (std::size_t i = 0; i < 3; ++i) queue.push("busy", calls[i]);
  queue.push("other", calls[3]);
  EXPECT_EQ(queue.take(), &calls[0]);
  EXPECT_EQ(queue.take(), &calls[3]);
  EXPECT_EQ(queue.take(), &calls[1]);
  EXPECT_EQ(queue.take(), &calls[2]);
}

TEST(OriginQueue, SkipsRemovedCalls) {
  OriginQueue queue({.total_max = 10, .per_origin_max = 10});
  std::array<OutgoingCall, 3> calls;
  queue.push("a", calls[0]);
  const auto second = queue.push("a", calls[1]);
  const auto third = queue.push("b", calls[2]);
  queue.remove(third);
  queue.remove(second);
  EXPECT_EQ(queue.take(), &calls[0]);
  EXPECT_EQ(queue.take(), nullptr);
}

}  // namespace
}  // namespace latchkey::http
