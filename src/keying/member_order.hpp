// The two orders in which an object's members are written, and the search for duplicate names that comes with sorting.
// Pure; safe from any thread as long as the scratch is not shared.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "keying/json_tree.hpp"

namespace latchkey {

// A member while it is being sorted: the first bytes of its name as a number that sorts like the name, and its node.
struct MemberRank {
  std::uint64_t prefix;
  std::uint32_t name;
};

// Changes eight bytes of UTF-8 so that they sort like UTF-16 code units.
std::uint64_t weigh_utf16(std::uint64_t bytes);

// Eight bytes of a name from `offset` (at most its size) on, as a number that sorts like UTF-16 code units; zeros
// behind its end. Reads beyond that end, as a node's text allows.
inline std::uint64_t rank_bytes(std::string_view name, std::size_t offset) {
  std::uint64_t bytes;
  std::memcpy(&bytes, name.data() + offset, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = std::byteswap(bytes);
  // Without a branch, as sizes cannot be predicted: drop what is behind the name.
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

// Sorts by UTF-16 code units. Fails with INVALID_JSON when two names are the same.
Result<void> sort_members(const JsonTree& tree, std::span<MemberRank> members);
// Reorders to JavaScript's property order: array indexes first, ascending, then the others as they stood in the text.
void order_as_properties(const JsonTree& tree, std::span<MemberRank> members);

}  // namespace latchkey
