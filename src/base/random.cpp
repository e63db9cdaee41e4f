#include "base/random.hpp"

#include <sys/random.h>

#include <iterator>

#include "base/assert.hpp"

namespace latchkey {

std::uint64_t SystemRandom::next() {
  const std::lock_guard lock(mutex_);
  if (left_ == 0) {
    // getrandom(2) fills requests of up to 256 bytes completely.
    LK_ASSERT(::getrandom(buffer_, sizeof buffer_, 0) == static_cast<ssize_t>(sizeof buffer_));
    left_ = std::size(buffer_);
  }
  std::uint64_t& slot = buffer_[--left_];
  const std::uint64_t value = slot;
  slot = 0;
  return value;
}

std::uint64_t SeededRandom::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace latchkey
