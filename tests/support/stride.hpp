// How many points a fault walk goes on at a time.
#pragma once

#include <cstdint>

namespace latchkey {

// Sanitizers make a walk several times slower: there it takes every fifth point.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr std::uint64_t kStride = 5;
#else
inline constexpr std::uint64_t kStride = 1;
#endif

}  // namespace latchkey
