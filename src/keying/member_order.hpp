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

// Negative, zero or positive: how two valid UTF-8 names compare by their UTF-16 code units, as JavaScript's sort()
// does.
int compare_utf16(std::string_view a, std::string_view b);

// Changes a prefix's bytes so that they sort like UTF-16 code units.
std::uint64_t weigh_utf16(std::uint64_t prefix);

// The rank of the name at `index`, for sort_members().
inline MemberRank rank_member(const JsonTree& tree, std::uint32_t index) {
  const std::string_view name = tree.node(index).content();
  std::uint64_t prefix;
  std::memcpy(&prefix, name.data(), sizeof prefix);  // a node's text may be read beyond its end
  if constexpr (std::endian::native == std::endian::little) prefix = std::byteswap(prefix);
  // Without a branch, as sizes cannot be predicted: drop the bytes behind the name.
  const std::size_t dropped = 8 - std::min(name.size(), sizeof prefix);
  prefix &= ~std::uint64_t{0} << 4 * dropped << 4 * dropped;
  // Only lead bytes from E0 on have their three top bits set, and only some of those need other weights.
  if ((prefix & prefix << 1 & prefix << 2 & 0x8080808080808080) != 0) [[unlikely]]
    prefix = weigh_utf16(prefix);
  return {prefix, index};
}

// Sorts by UTF-16 code units. Fails with INVALID_JSON when two names are the same.
Result<void> sort_members(const JsonTree& tree, std::span<MemberRank> members);
// Reorders to JavaScript's property order: array indexes first, ascending, then the others as they stood in the text.
void order_as_properties(const JsonTree& tree, std::span<MemberRank> members);

}  // namespace latchkey
