// TestLength: how much of a long test one run does. `make test` runs a sample; LATCHKEY_LONG_TESTS=1 (`make test-all`)
// runs all of it. Sanitizers make a test several times slower, so a sample is smaller there.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace latchkey {

inline bool is_long_test_run() {
  const char* const value = std::getenv("LATCHKEY_LONG_TESTS");
  return value != nullptr && *value != '\0';
}

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// A walk visits every nth point.
inline std::uint64_t walk_stride() {
  if (is_long_test_run()) return kIsSanitized ? 5 : 1;
  return kIsSanitized ? 41 : 8;
}

// How often a test repeats: `all` times in a long run, else a share of it.
constexpr std::uint64_t share_of(std::uint64_t all, std::uint64_t divisor) {
  return all / divisor > 0 ? all / divisor : 1;
}
inline std::uint64_t repetitions(std::uint64_t all) {
  if (is_long_test_run()) return kIsSanitized ? share_of(all, 5) : all;
  return share_of(all, kIsSanitized ? 40 : 8);
}

}  // namespace latchkey
