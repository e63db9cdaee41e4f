// The limits of requests, as api/openapi.yaml documents them. engine/validate.hpp enforces them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace latchkey {

inline constexpr std::size_t kKeyBytesMax = 512;
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kBodyBytesMax = 1024 * 1024;
inline constexpr Duration kLeaseMin = std::chrono::seconds{1};
inline constexpr Duration kLeaseMax = std::chrono::hours{24};
inline constexpr Duration kWindowMax = std::chrono::hours{24 * 3653};
inline constexpr std::uint32_t kRetriesMax = 1000;
inline constexpr std::uint32_t kFactorMax = 1000;
inline constexpr std::size_t kScheduleMax = 64;
inline constexpr std::size_t kAfterMax = 1000;

}  // namespace latchkey
