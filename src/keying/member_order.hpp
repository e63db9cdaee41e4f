// The two orders in which the members of an object are written. Sorting also finds duplicate names.
// Pure; safe from any thread as long as the members are not shared.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "keying/json_tree.hpp"

namespace latchkey {

// A member during sorting: the first bytes of its name as a number that sorts like the name, and the name's node.
struct MemberRank {
  std::uint64_t prefix;
  std::uint32_t name;
};

// Changes eight bytes of UTF-8 so that they sort like UTF-16 code units.
std::uint64_t weigh_utf16(std::uint64_t bytes);

// Eight bytes of a name from `offset` (at most its size), as a number that sorts like UTF-16 code units, with zeros
// after the end of the name. Reads beyond the end, which the text of a node allows.
inline std::uint64_t rank_bytes(std::string_view name, std::size_t offset) {
  std::uint64_t bytes;
  std::memcpy(&bytes, name.data() + offset, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = std::byteswap(bytes);
  // Clears the bytes after the name, without a branch, because the processor cannot predict the size.
  const std::size_t dropped = 8 - std::min(name.size() - offset, sizeof bytes);
  bytes &= ~std::uint64_t{0} << 4 * dropped << 4 * dropped;
  // Only lead bytes from E0 on have their three top bits set, and only some of those need other weights.
  if ((bytes & bytes << 1 & bytes << 2 & 0x8080808080808080) != 0) [[unlikely]]
    bytes = weigh_utf16(bytes);
  return bytes;
}

// The rank of the name at `index`, for sort_members().
inline MemberRank rank_member(const JsonTree& tree, std::uint32_t index) {
  return {rank_bytes(tree.node(index).content(), 0), index};
}

// Sorts by UTF-16 code units. Fails with INVALID_JSON when two names are equal.
Result<void> sort_members(const JsonTree& tree, std::span<MemberRank> members);
// Reorders to JavaScript's property order: array indexes first, ascending, then the other names in the order of the
// text.
void order_as_properties(const JsonTree& tree, std::span<MemberRank> members);

}  // namespace latchkey
