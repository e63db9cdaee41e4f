// RetryPolicy: when a failed try is tried again. A value: the caller draws the dice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/time.hpp"

namespace latchkey {

enum class Jitter : std::uint8_t { none, full, equal, additive };

// One draw in [0, 1).
struct Dice {
  double roll = 0;
};
inline constexpr Dice no_jitter{};

struct RetryPolicy {
  std::uint32_t retries = 3;                    // tries after the first one
  Duration first = std::chrono::seconds{1};     // the first delay
  std::uint32_t factor = 5;                     // each delay is the one before times this
  Duration ceiling = std::chrono::seconds{30};  // no delay is longer, jitter excepted when additive
  Duration total = Duration::max();             // no retry starts later than this after the first attempt
  Jitter jitter = Jitter::none;

  bool operator==(const RetryPolicy&) const = default;

  // The delay after failed attempt number `attempt`, counted from 1.
  constexpr Duration delay_after(std::uint32_t attempt, Dice dice) const {
    std::int64_t ms = std::min(first, ceiling).count();
    const bool grows = factor > 1 && ms > 0;
    if (factor == 0 && attempt > 1) ms = 0;
    for (std::uint32_t i = 1; grows && i < attempt && ms < ceiling.count(); ++i) {
      if (ms > ceiling.count() / factor) {
        ms = ceiling.count();
      } else {
        ms *= factor;
      }
    }
    return Duration{jittered(std::min(ms, ceiling.count()), dice)};
  }

 private:
  constexpr std::int64_t jittered(std::int64_t ms, Dice dice) const {
    const auto part = [&](std::int64_t span) {
      return static_cast<std::int64_t>(static_cast<double>(span) * dice.roll);
    };
    switch (jitter) {
      case Jitter::none:
        return ms;
      case Jitter::full:
        return part(ms);
      case Jitter::equal:
        return ms / 2 + part(ms - ms / 2);
      case Jitter::additive:
        return ms + std::min(part(first.count()), std::numeric_limits<std::int64_t>::max() - ms);
    }
    return ms;
  }
};

// A6: 1 s, 5 s, 25 s, then failed.
inline constexpr RetryPolicy kDefaultRetries{};
inline constexpr RetryPolicy kNoRetries{.retries = 0};

}  // namespace latchkey
