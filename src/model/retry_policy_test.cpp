#include "model/retry_policy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

namespace latchkey {
namespace {

using namespace std::chrono_literals;

static_assert(RetryPolicy{.retries = 3, .first = 1s, .factor = 5, .ceiling = 30s}.delay_after(3, no_jitter) == 25s);
// A6: 1 s, 5 s, 25 s, then failed.
static_assert(RetryPolicy{}.retries == 3);
static_assert(RetryPolicy{}.delay_after(1, no_jitter) == 1s);
static_assert(RetryPolicy{}.delay_after(2, no_jitter) == 5s);
static_assert(RetryPolicy{}.delay_after(3, no_jitter) == 25s);
static_assert(RetryPolicy{}.delay_after(4, no_jitter) == 30s);
// The ceiling also limits the first delay.
static_assert(RetryPolicy{.first = 1min}.delay_after(1, no_jitter) == 30s);
static_assert(RetryPolicy{.factor = 1}.delay_after(9, no_jitter) == 1s);
static_assert(RetryPolicy{.factor = 0}.delay_after(2, no_jitter) == 0s);
// A large number of attempts neither overflows nor takes long.
static_assert(RetryPolicy{.ceiling = Duration::max()}.delay_after(4'000'000'000, no_jitter) == Duration::max());
static_assert(RetryPolicy{.factor = 1}.delay_after(4'000'000'000, no_jitter) == 1s);
static_assert(RetryPolicy{.first = 0s}.delay_after(4'000'000'000, no_jitter) == 0s);
static_assert(RetryPolicy{.first = Duration::max(), .ceiling = Duration::max(), .jitter = Jitter::additive}.delay_after(
                  2, Dice{0.999}) == Duration::max());
static_assert(RetryPolicy{.jitter = Jitter::full}.delay_after(1, Dice{0.5}) == 500ms);
static_assert(RetryPolicy{.jitter = Jitter::equal}.delay_after(1, Dice{0.5}) == 750ms);
static_assert(RetryPolicy{.jitter = Jitter::additive}.delay_after(2, Dice{0.5}) == 5500ms);

// B4: min(1 s · 2^n + U(0, 1 s), 30 s).
constexpr RetryPolicy b4() { return {.first = 1s, .factor = 2, .ceiling = 30s, .jitter = Jitter::additive}; }
static_assert(b4().delay_after(1, Dice{0.25}) == 1250ms);
static_assert(b4().delay_after(5, Dice{0.999}) == 16999ms);
static_assert(b4().delay_after(6, Dice{0.999}) == 30s);
// The explicit schedule: its last delay repeats, and the ceiling does not apply.
static_assert(RetryPolicy{.schedule = {5s, 5min, 1h}}.delay_after(1, no_jitter) == 5s);
static_assert(RetryPolicy{.schedule = {5s, 5min, 1h}}.delay_after(3, no_jitter) == 1h);
static_assert(RetryPolicy{.schedule = {5s, 5min, 1h}}.delay_after(4'000'000'000, no_jitter) == 1h);
static_assert(RetryPolicy{.jitter = Jitter::full, .schedule = {10s}}.delay_after(1, Dice{0.5}) == 5s);
static_assert(RetryPolicy{.jitter = Jitter::percent, .jitter_percent = 20}.delay_after(2, Dice{0}) == 4s);
static_assert(RetryPolicy{.jitter = Jitter::percent, .jitter_percent = 20}.delay_after(2, Dice{0.5}) == 5s);
static_assert(RetryPolicy{.jitter = Jitter::decorrelated}.delay_after(1, Dice{0}) == 1s);
static_assert(RetryPolicy{.jitter = Jitter::decorrelated}.delay_after(1, Dice{0.5}) == 2s);

// covers: A6
TEST(RetryPolicy, DefaultsAreThoseOfA6) {
  EXPECT_EQ(kDefaultRetries, RetryPolicy{});
  EXPECT_EQ(kNoRetries.retries, 0u);
}

struct Drawn {
  RetryPolicy policy;
  std::uint32_t attempt;
  Dice dice;
};

Drawn draw() {
  Drawn drawn;
  drawn.policy.first = Duration{*rc::gen::inRange<std::int64_t>(0, 100'000)};
  drawn.policy.factor = *rc::gen::inRange<std::uint32_t>(0, 100);
  drawn.policy.ceiling = Duration{*rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 1'000'000),
                                                  rc::gen::just(std::numeric_limits<std::int64_t>::max()))};
  if (*rc::gen::inRange(0, 3) == 0)
    for (int left = *rc::gen::inRange(1, 5); left > 0; --left)
      drawn.policy.schedule.emplace_back(*rc::gen::inRange<std::int64_t>(0, 1'000'000));
  drawn.policy.jitter_percent = *rc::gen::inRange<std::uint32_t>(0, 101);
  drawn.attempt = *rc::gen::inRange<std::uint32_t>(1, 1'000);
  drawn.dice.roll = *rc::gen::inRange(0, 1'000'000) / 1e6;
  return drawn;
}

RC_GTEST_PROP(RetryPolicy, JitterStaysInItsBounds, ()) {
  auto [policy, attempt, dice] = draw();
  const Duration plain = policy.delay_after(attempt, dice);
  const Duration ceiling = policy.schedule.empty() ? policy.ceiling : std::ranges::max(policy.schedule);
  const Duration first = policy.schedule.empty() ? std::min(policy.first, policy.ceiling) : policy.schedule.front();
  RC_ASSERT(plain >= 0ms && plain <= ceiling);
  policy.jitter = Jitter::full;
  const Duration full = policy.delay_after(attempt, dice);
  RC_ASSERT(full >= 0ms && full <= plain);
  policy.jitter = Jitter::equal;
  const Duration equal = policy.delay_after(attempt, dice);
  RC_ASSERT(equal >= plain / 2 && equal <= plain);
  policy.jitter = Jitter::additive;
  const Duration additive = policy.delay_after(attempt, dice);
  RC_ASSERT(additive >= plain && additive <= ceiling);
  RC_ASSERT(additive - plain <= first);
  policy.jitter = Jitter::percent;
  const Duration around = policy.delay_after(attempt, dice);
  RC_ASSERT(around >= 0ms && around <= ceiling);
  const auto most = static_cast<double>(plain.count()) * policy.jitter_percent / 100 + 2;
  RC_ASSERT(std::abs(static_cast<double>((around - plain).count())) <= most);
  policy.jitter = Jitter::decorrelated;
  const Duration walked = policy.delay_after(attempt, dice);
  RC_ASSERT(walked >= first && walked <= ceiling);
}

RC_GTEST_PROP(RetryPolicy, DecorrelatedDelaysSpread, ()) {
  const RetryPolicy policy{.ceiling = 1h, .jitter = Jitter::decorrelated};
  const auto attempt = *rc::gen::inRange<std::uint32_t>(2, 100);
  std::set<Duration> seen;
  for (int i = 0; i < 20; ++i) seen.insert(policy.delay_after(attempt, Dice{i / 20.0}));
  RC_ASSERT(seen.size() >= 15u);
}

RC_GTEST_PROP(RetryPolicy, DelaysNeverShrink, ()) {
  auto [policy, attempt, dice] = draw();
  std::ranges::sort(policy.schedule);
  policy.factor = std::max(policy.factor, 1u);
  RC_ASSERT(policy.delay_after(attempt, no_jitter) <= policy.delay_after(attempt + 1, no_jitter));
}

}  // namespace
}  // namespace latchkey
