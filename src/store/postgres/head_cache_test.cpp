#include "store/postgres/head_cache.hpp"

#include <gtest/gtest.h>

namespace latchkey::pg {
namespace {

std::shared_ptr<const RunHead> head_of(std::uint64_t counter, std::size_t bytes = 0) {
  auto head = std::make_shared<RunHead>();
  head->id = make_uuid_v7({}, counter, 7);
  head->input.assign(bytes, 'x');
  return head;
}

TEST(HeadCache, EvictsTheOldestWhenFull) {
  HeadCache cache(1'000'000);
  for (std::uint64_t i = 1; i <= 100; ++i) cache.add(head_of(i, 50'000));
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(cache.find(50), nullptr);
  ASSERT_NE(cache.find(100), nullptr);
  EXPECT_EQ(seq_in(cache.find(100)->id), 100);
  EXPECT_NE(cache.find(90), nullptr);
}

TEST(HeadCache, ForgettingMakesRoom) {
  HeadCache cache(1'000'000);
  cache.add(head_of(1, 50'000));
  for (std::uint64_t i = 2; i <= 1'000; ++i) {
    cache.add(head_of(i, 50'000));
    cache.forget(static_cast<Seq>(i));
    cache.forget(static_cast<Seq>(i));
    EXPECT_EQ(cache.find(static_cast<Seq>(i)), nullptr);
  }
  EXPECT_NE(cache.find(1), nullptr);
  cache.add(head_of(2));
  EXPECT_NE(cache.find(2), nullptr) << "a forgotten head may be added again";
}

TEST(HeadCache, OrderIsBoundedBehindAnOldEntry) {
  HeadCache cache(1'000'000'000);
  cache.add(head_of(1));
  for (std::uint64_t i = 2; i <= 100'000; ++i) {
    cache.add(head_of(i));
    cache.forget(static_cast<Seq>(i));
    ASSERT_LT(cache.order_size(), 2'000u);
  }
  cache.forget(1);
  EXPECT_EQ(cache.order_size(), 0u);
}

}  // namespace
}  // namespace latchkey::pg
