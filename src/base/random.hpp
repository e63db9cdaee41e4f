// Random: the only source of random numbers. It is injected, so that a seed repeats a simulation.
#pragma once

#include <cstdint>
#include <mutex>

namespace latchkey {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
  // Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
};

// The kernel's random numbers, buffered. Suitable for secrets. Safe from any thread.
class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;

 private:
  std::mutex mutex_;
  std::uint64_t buffer_[32] = {};
  unsigned left_ = 0;
};

// SplitMix64: repeatable, not suitable for secrets.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;

 private:
  std::uint64_t state_;
};

}  // namespace latchkey
