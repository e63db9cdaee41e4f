// UUIDs of version 7: ordered by time, with a counter of the store in the bits after the time (RFC 9562 §6.2).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace latchkey {

struct Uuid {
  std::array<unsigned char, 16> bytes{};

  auto operator<=>(const Uuid&) const = default;
  bool is_nil() const { return *this == Uuid{}; }
};

// The 54-bit `counter` fills rand_a and the first 42 bits of rand_b; `dice` the remaining 20.
Uuid make_uuid_v7(Instant at, std::uint64_t counter, std::uint64_t dice);
// The instant and the counter that were passed to make_uuid_v7.
Instant uuid_time(const Uuid& id);
inline std::uint64_t uuid_counter(const Uuid& id) {
  std::uint64_t tail = 0;
  for (int i = 8; i < 16; ++i) tail = tail << 8 | id.bytes[i];
  const std::uint64_t high = std::uint64_t(id.bytes[6] & 0x0f) << 8 | id.bytes[7];
  return high << 42 | (tail >> 20 & 0x3ff'ffff'ffff);
}

std::string to_string(const Uuid& id);
std::optional<Uuid> parse_uuid(std::string_view text);

}  // namespace latchkey

template <>
struct std::hash<latchkey::Uuid> {
  std::size_t operator()(const latchkey::Uuid& id) const noexcept {
    std::uint64_t low;
    std::memcpy(&low, id.bytes.data() + 8, sizeof low);
    return low * 0x9e3779b97f4a7c15ULL;
  }
};
