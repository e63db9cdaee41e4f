#include "keying/member_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace latchkey {
namespace {

// UTF-8 bytes sort by code point, UTF-16 units sort code points above U+FFFF (lead bytes F0 to F4) before U+E000 to
// U+FFFF (lead bytes EE and EF). With weights that put EE and EF after F4, bytes sort like UTF-16 units. Other bytes do
// not change.
unsigned utf16_weight(unsigned char byte) { return byte == 0xEE || byte == 0xEF ? byte + 8u : byte; }

std::string_view name_of(const JsonTree& tree, MemberRank member) { return tree.node(member.name).content(); }

bool is_before(const JsonTree& tree, MemberRank a, MemberRank b) {
  if (a.prefix != b.prefix) [[likely]]
    return a.prefix < b.prefix;
  const std::string_view x = name_of(tree, a), y = name_of(tree, b);
  for (std::size_t at = 8; at < x.size() && at < y.size(); at += 8) {
    const std::uint64_t left = rank_bytes(x, at), right = rank_bytes(y, at);
    if (left != right) return left < right;
  }
  return x.size() < y.size();
}

void insertion_sort(const JsonTree& tree, std::span<MemberRank> members) {
  for (std::size_t i = 1; i < members.size(); ++i) {
    const MemberRank moving = members[i];
    std::size_t to = i;
    for (; to > 0 && is_before(tree, moving, members[to - 1]); --to) members[to] = members[to - 1];
    members[to] = moving;
  }
}

constexpr std::size_t COUNTED_MAX = 40;

enum class Sorted { WHOLLY, BY_PREFIX };

// The position of a member is the number of members with a smaller prefix. No branch depends on the names, so for
// objects of usual size this is faster than other sorts. The order of members with equal prefixes is arbitrary.
Sorted counting_sort(std::span<MemberRank> members) {
  std::array<std::uint64_t, COUNTED_MAX> prefixes;
  std::array<std::size_t, COUNTED_MAX> places;
  const std::size_t count = members.size();
  for (std::size_t i = 0; i < count; ++i) prefixes[i] = members[i].prefix;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t place = 0;
#pragma clang loop vectorize(disable) unroll_count(8)
    for (std::size_t j = 0; j < count; ++j) place += prefixes[j] < prefixes[i];
    places[i] = place;
    sum += place;
  }
  // Each pair of different prefixes counts once.
  const bool all_differ = sum == count * (count - 1) / 2;
  if (!all_differ)
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < i; ++j) places[i] += prefixes[j] == prefixes[i];
  std::array<MemberRank, COUNTED_MAX> unsorted;
  std::ranges::copy(members, unsorted.begin());
  for (std::size_t i = 0; i < count; ++i) members[places[i]] = unsorted[i];
  return all_differ ? Sorted::WHOLLY : Sorted::BY_PREFIX;
}

Result<void> refuse_duplicates(const JsonTree& tree, std::span<const MemberRank> sorted) {
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (name_of(tree, sorted[i - 1]) != name_of(tree, sorted[i])) continue;
    const std::uint32_t second = std::max(sorted[i - 1].name, sorted[i].name);
    return fail(Code::INVALID_JSON, fmt::format("duplicate member name at byte {}", tree.position(tree.node(second))));
  }
  return {};
}

constexpr std::uint64_t NO_INDEX = std::uint64_t{1} << 32;

// The array index (0 to 2^32 - 2) whose decimal text is the name, or NO_INDEX.
std::uint64_t array_index(std::string_view name) {
  if (name.empty() || name.size() > 10 || (name[0] == '0' && name.size() > 1)) return NO_INDEX;
  std::uint64_t value = 0;
  const char* const end = name.data() + name.size();
  if (std::from_chars(name.data(), end, value).ptr != end || value >= NO_INDEX - 1) return NO_INDEX;
  return value;
}

}  // namespace

std::uint64_t weigh_utf16(std::uint64_t bytes) {
  std::uint64_t weighed = 0;
  for (int shift = 56; shift >= 0; shift -= 8)
    weighed |= std::uint64_t{utf16_weight(static_cast<unsigned char>(bytes >> shift))} << shift;
  return weighed;
}

Result<void> sort_members(const JsonTree& tree, std::span<MemberRank> members) {
  if (members.size() > COUNTED_MAX) {
    std::ranges::sort(members, [&](MemberRank a, MemberRank b) { return is_before(tree, a, b); });
    return refuse_duplicates(tree, members);
  }
  if (counting_sort(members) == Sorted::WHOLLY) [[likely]]
    return {};
  insertion_sort(tree, members);
  return refuse_duplicates(tree, members);
}

void order_as_properties(const JsonTree& tree, std::span<MemberRank> members) {
  for (MemberRank& member : members) member.prefix = array_index(name_of(tree, member));
  std::ranges::sort(
      members, [](MemberRank a, MemberRank b) { return std::pair(a.prefix, a.name) < std::pair(b.prefix, b.name); });
}

}  // namespace latchkey
