// The step of a fault walk: it visits every kStride-th fault point.
#pragma once

#include <cstdint>

namespace latchkey {

// A walk under a sanitizer is several times slower, so it visits every fifth point.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr std::uint64_t kStride = 5;
#else
inline constexpr std::uint64_t kStride = 1;
#endif

}  // namespace latchkey
