#include "keying/member_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace latchkey {
namespace {

std::string to_utf8(const std::vector<char32_t>& points) {
  std::string text;
  for (const char32_t c : points) {
    if (c < 0x80) {
      text += static_cast<char>(c);
      continue;
    }
    const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    text += static_cast<char>((0xFF00 >> (tail + 1) & 0xFF) | c >> 6 * tail);
    for (int i = tail - 1; i >= 0; --i) text += static_cast<char>(0x80 | (c >> 6 * i & 0x3F));
  }
  return text;
}

std::u16string to_utf16(const std::vector<char32_t>& points) {
  std::u16string text;
  for (const char32_t c : points) {
    if (c >= 0x10000) text += static_cast<char16_t>(0xD7C0 + (c >> 10));
    text += static_cast<char16_t>(c < 0x10000 ? c : 0xDC00 | (c & 0x3FF));
  }
  return text;
}

std::vector<char32_t> make_points() {
  // The borders of every UTF-8 and UTF-16 length.
  static const std::vector<char32_t> POINTS{0x20,   'a',    'b',    0x7F,   0x80,   0x7FF,   0x800,
                                            0xD7FF, 0xE000, 0xEFFF, 0xF000, 0xFFFF, 0x10000, 0x10FFFF};
  return *rc::gen::container<std::vector<char32_t>>(rc::gen::elementOf(POINTS));
}

RC_GTEST_PROP(MemberOrder, SortsLikeUtf16, ()) {
  const auto count = *rc::gen::inRange(0, 90);
  std::vector<std::u16string> names;
  std::string text = "{";
  for (int i = 0; i < count; ++i) {
    auto points = make_points();
    for (const char digit : std::to_string(i)) points.push_back(static_cast<char32_t>(digit));  // no two are equal
    if (i % 3 == 0) points.insert(points.begin(), 10, 'p');                                     // equal prefixes
    names.push_back(to_utf16(points));
    text += (i == 0 ? "\"" : ",\"") + to_utf8(points) + "\":" + std::to_string(i);
  }
  JsonTree tree;
  RC_ASSERT(tree.parse(text + "}").has_value());
  std::vector<MemberRank> members;
  for (std::uint32_t at = 1; at != tree.next(0); at = tree.next(at + 1)) members.push_back(rank_member(tree, at));
  RC_ASSERT(sort_members(tree, members).has_value());
  for (std::size_t i = 1; i < members.size(); ++i) {
    const auto index = [&](std::size_t member) { return (members[member].name - 1) / 2; };
    RC_ASSERT(names[index(i - 1)] < names[index(i)]);
  }
}

}  // namespace
}  // namespace latchkey
