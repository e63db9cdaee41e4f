#include "api/readiness.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/stopped_clock.hpp"

namespace latchkey::api {
namespace {

// Its probes end when the test says so.
class SilentStore final : public StoreLifecycle {
 public:
  Instant now() override { return at; }
  std::optional<Error> find_failure() override { return failure; }
  void probe(Done<std::monostate> done) override { probes.push_back(std::move(done)); }

  Instant at{};
  std::optional<Error> failure;
  std::vector<Done<std::monostate>> probes;
};

class ReadinessTest : public ::testing::Test {
 protected:
  StoppedClock clock;
  SilentStore store;
  Readiness readiness{store, clock};
};

TEST_F(ReadinessTest, RepliesWhileTheProbeIsPending) {
  EXPECT_FALSE(readiness.find_failure());
  EXPECT_EQ(store.probes.size(), 0u);
  store.failure = Error{Code::STORE_UNAVAILABLE, "no reply"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(readiness.find_failure()->code, Code::STORE_UNAVAILABLE);
  ASSERT_EQ(store.probes.size(), 1u) << "one probe at a time";
  store.probes[0](fail(Code::STORE_UNAVAILABLE, "no reply"));
  EXPECT_TRUE(readiness.find_failure());
  ASSERT_EQ(store.probes.size(), 2u) << "the next call probes again";
  store.failure.reset();
  store.probes[1](std::monostate{});
  EXPECT_FALSE(readiness.find_failure());
}

TEST_F(ReadinessTest, ClockAheadOfTheHostIsReported) {
  store.at = clock.now() + std::chrono::seconds{59};
  EXPECT_FALSE(readiness.find_clock_warning());
  store.at = clock.now() + std::chrono::hours{3} + std::chrono::seconds{5};
  EXPECT_TRUE(readiness.find_clock_warning()->starts_with("the store's clock is 3h ahead of this host's clock"));
}

}  // namespace
}  // namespace latchkey::api
