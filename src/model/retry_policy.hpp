// RetryPolicy: the delays between attempts. A pure value: the caller draws the random numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace latchkey {

// The delay after jitter, where d is the delay without jitter and r is drawn from [0, 1):
//   none          d
//   full          d·r
//   equal         d/2 + d/2·r
//   additive      d + first·r, at most the ceiling
//   decorrelated  min(ceiling, first + (3·previous − first)·r), independent of d; the previous delays are drawn again
//   percent       d ± jitter_percent, at most the ceiling
// Stores write these numbers.
enum class Jitter : std::uint8_t { none, full, equal, additive, decorrelated, percent };

// One draw in [0, 1).
struct Dice {
  double roll = 0;
};
inline constexpr Dice no_jitter{};

struct RetryPolicy {
  std::uint32_t retries = 3;                    // attempts after the first
  Duration first = std::chrono::seconds{1};     // the first delay
  std::uint32_t factor = 5;                     // each delay is the previous one times this
  Duration ceiling = std::chrono::seconds{30};  // no delay is longer
  Duration total = Duration::max();             // no retry starts later than this after the first attempt
  Jitter jitter = Jitter::none;
  std::uint32_t jitter_percent = 10;  // of Jitter::percent; 0 to 100
  // The delays one by one, instead of first, factor and ceiling. The last one repeats.
  std::vector<Duration> schedule;

  bool operator==(const RetryPolicy&) const = default;

  // The delay after failed attempt number `attempt`, counted from 1.
  constexpr Duration delay_after(std::uint32_t attempt, Dice dice) const {
    return Duration{jittered(plain(attempt), attempt, dice)};
  }

 private:
  using Ms = std::int64_t;

  constexpr Ms first_ms() const {
    return schedule.empty() ? std::min(first, ceiling).count() : schedule.front().count();
  }
  constexpr Ms ceiling_ms() const { return schedule.empty() ? ceiling.count() : std::ranges::max(schedule).count(); }

  constexpr Ms plain(std::uint32_t attempt) const {
    if (!schedule.empty()) return schedule[std::min<std::size_t>(attempt, schedule.size()) - 1].count();
    Ms ms = first_ms();
    const bool grows = factor > 1 && ms > 0;
    if (factor == 0 && attempt > 1) ms = 0;
    for (std::uint32_t i = 1; grows && i < attempt && ms < ceiling.count(); ++i) {
      if (ms > ceiling.count() / factor) {
        ms = ceiling.count();
      } else {
        ms *= factor;
      }
    }
    return std::min(ms, ceiling.count());
  }

  static constexpr Ms part(Ms span, double roll) { return static_cast<Ms>(static_cast<double>(span) * roll); }
  static constexpr Ms add(Ms a, Ms b) {
    return b > std::numeric_limits<Ms>::max() - a ? std::numeric_limits<Ms>::max() : a + b;
  }

  constexpr Ms jittered(Ms ms, std::uint32_t attempt, Dice dice) const {
    switch (jitter) {
      case Jitter::none:
        return ms;
      case Jitter::full:
        return part(ms, dice.roll);
      case Jitter::equal:
        return ms / 2 + part(ms - ms / 2, dice.roll);
      case Jitter::additive:
        return std::min(add(ms, part(first_ms(), dice.roll)), std::max(ms, ceiling_ms()));
      case Jitter::decorrelated:
        return decorrelated(attempt, dice);
      case Jitter::percent: {
        const Ms share = std::min(jitter_percent, 100u);
        const Ms most = ms / 100 * share + ms % 100 * share / 100;
        return std::min(add(ms - most, part(add(most, most), dice.roll)), std::max(ms, ceiling_ms()));
      }
    }
    return ms;
  }

  // One draw determines all delays: its bits seed the draws of the previous delays, so that a policy needs no state.
  constexpr Ms decorrelated(std::uint32_t attempt, Dice dice) const {
    const Ms base = first_ms(), cap = ceiling_ms();
    auto bits = static_cast<std::uint64_t>(dice.roll * 0x1.0p53);
    Ms previous = base;
    double roll = dice.roll;
    for (std::uint32_t i = 0; i < std::min(attempt, 64u); ++i) {  // after 64 steps the distribution no longer changes
      const Ms high = previous > cap / 3 ? cap : previous * 3;
      previous = std::min(base + part(std::max<Ms>(high - base, 0), roll), cap);
      roll = next_roll(bits);
    }
    return previous;
  }

  // SplitMix64.
  static constexpr double next_roll(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
};

// A6: 1 s, 5 s, 25 s, then failed.
inline const RetryPolicy kDefaultRetries{};
inline const RetryPolicy kNoRetries{.retries = 0};

}  // namespace latchkey
