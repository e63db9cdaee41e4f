#include "model/retry_policy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace latchkey {
namespace {

using namespace std::chrono_literals;

static_assert(RetryPolicy{.retries = 3, .first = 1s, .factor = 5, .ceiling = 30s}.delay_after(3, no_jitter) == 25s);
// A6: 1 s, 5 s, 25 s, then failed.
static_assert(kDefaultRetries.retries == 3);
static_assert(kDefaultRetries.delay_after(1, no_jitter) == 1s);
static_assert(kDefaultRetries.delay_after(2, no_jitter) == 5s);
static_assert(kDefaultRetries.delay_after(3, no_jitter) == 25s);
static_assert(kDefaultRetries.delay_after(4, no_jitter) == 30s);
static_assert(kNoRetries.retries == 0);
// The ceiling holds from the first delay on.
static_assert(RetryPolicy{.first = 1min}.delay_after(1, no_jitter) == 30s);
static_assert(RetryPolicy{.factor = 1}.delay_after(9, no_jitter) == 1s);
static_assert(RetryPolicy{.factor = 0}.delay_after(2, no_jitter) == 0s);
// Nothing overflows, and nothing takes long, however many attempts there were.
static_assert(RetryPolicy{.ceiling = Duration::max()}.delay_after(4'000'000'000, no_jitter) == Duration::max());
static_assert(RetryPolicy{.factor = 1}.delay_after(4'000'000'000, no_jitter) == 1s);
static_assert(RetryPolicy{.first = 0s}.delay_after(4'000'000'000, no_jitter) == 0s);
static_assert(RetryPolicy{.first = Duration::max(), .ceiling = Duration::max(), .jitter = Jitter::additive}.delay_after(
                  2, Dice{0.999}) == Duration::max());
static_assert(RetryPolicy{.jitter = Jitter::full}.delay_after(1, Dice{0.5}) == 500ms);
static_assert(RetryPolicy{.jitter = Jitter::equal}.delay_after(1, Dice{0.5}) == 750ms);
static_assert(RetryPolicy{.jitter = Jitter::additive}.delay_after(2, Dice{0.5}) == 5500ms);

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
  drawn.attempt = *rc::gen::inRange<std::uint32_t>(1, 1'000);
  drawn.dice.roll = *rc::gen::inRange(0, 1'000'000) / 1e6;
  return drawn;
}

RC_GTEST_PROP(RetryPolicy, JitterStaysInItsBounds, ()) {
  auto [policy, attempt, dice] = draw();
  const Duration plain = policy.delay_after(attempt, dice);
  RC_ASSERT(plain >= 0ms && plain <= policy.ceiling);
  policy.jitter = Jitter::full;
  const Duration full = policy.delay_after(attempt, dice);
  RC_ASSERT(full >= 0ms && full <= plain);
  policy.jitter = Jitter::equal;
  const Duration equal = policy.delay_after(attempt, dice);
  RC_ASSERT(equal >= plain / 2 && equal <= plain);
  policy.jitter = Jitter::additive;
  const Duration additive = policy.delay_after(attempt, dice);
  RC_ASSERT(additive >= plain);
  RC_ASSERT(additive - plain <= policy.first);
}

RC_GTEST_PROP(RetryPolicy, DelaysNeverShrink, ()) {
  auto [policy, attempt, dice] = draw();
  policy.factor = std::max(policy.factor, 1u);
  RC_ASSERT(policy.delay_after(attempt, no_jitter) <= policy.delay_after(attempt + 1, no_jitter));
}

}  // namespace
}  // namespace latchkey
