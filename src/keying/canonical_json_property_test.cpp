// Different texts of one document have one canonical form, and our reader and simdjson accept the same texts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <fstream>

#include "base/random.hpp"
#include "keying/canonical_json.hpp"

namespace latchkey {
namespace {

// A random document from `seed`, written with the white space, escapes and member order that `style` chooses.
class Document {
 public:
  Document(std::uint64_t seed, std::uint64_t style) : content_(seed), style_(style) {}

  std::string write(int depth = 4) {
    const std::uint64_t kind = content_.below(depth > 0 ? 6 : 4);
    switch (kind) {
      case 0:
        return space() + write_number() + space();
      case 1:
        return space() + std::array{"true", "false", "null"}[content_.below(3)] + space();
      case 2:
      case 3:
        return space() + write_string("") + space();
      case 4: {
        std::string text;
        for (std::uint64_t i = content_.below(5); i > 0; --i) text += (text.empty() ? "" : ",") + write(depth - 1);
        return space() + "[" + text + "]";
      }
      default:
        return space() + write_object(depth) + space();
    }
  }

 private:
  std::string space() {
    static constexpr std::array SPACES{"", "", "", " ", "\n", "\r\n\t  "};
    return SPACES[style_.below(SPACES.size())];
  }

  std::string write_object(int depth) {
    std::vector<std::string> members;
    for (std::uint64_t i = content_.below(6); i > 0; --i) {
      const std::string name = write_string(std::to_string(i));  // no two are equal
      members.push_back(space() + name + space() + ":" + write(depth - 1));
    }
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[style_.below(i)]);
    std::string text;
    for (const std::string& member : members) text += (text.empty() ? "" : ",") + member;
    return "{" + text + "}";
  }

  std::string write_number() {
    const std::string digits = std::to_string(1 + content_.below(99'999));
    const std::uint64_t zeros = style_.below(4);
    switch (content_.below(2)) {
      case 0:
        return style_.one_in(2) ? digits : digits + "." + std::string(1 + zeros, '0');
      default:
        return style_.one_in(2) ? "0." + digits + std::string(zeros, '0')
                                : "0." + digits + std::array{"e0", "E-0", "e+00"}[style_.below(3)];
    }
  }

  std::string write_string(const std::string& head) {
    static constexpr std::array PLAIN{"a", "Z", " ", "/", "é", "東", "😀"};
    static constexpr std::array ESCAPED{"\\u0061", "\\u005a", "\\u0020", "\\/", "\\u00E9", "\\u6771", "\\uD83D\\ude00"};
    static constexpr std::array HARD{"\\n", "\\\"", "\\\\", "\\u0001"};
    static constexpr std::array HARDER{"\\u000A", "\\u0022", "\\u005C", "\\u0001"};
    std::string text = head;
    for (std::uint64_t i = content_.below(20); i > 0; --i) {
      const bool hard = content_.one_in(8);
      const std::uint64_t which = content_.below(hard ? HARD.size() : PLAIN.size());
      const bool plain = !style_.one_in(4);
      text += hard ? (plain ? HARD : HARDER)[which] : (plain ? PLAIN : ESCAPED)[which];
    }
    return '"' + text + '"';
  }

  SeededRandom content_;
  SeededRandom style_;
};

RC_GTEST_PROP(CanonicalJsonProperty, DoesNotDependOnStyle, (std::uint64_t seed, std::uint64_t style)) {
  const auto one = canonical_json(Document(seed, 1).write());
  const auto two = canonical_json(Document(seed, style).write());
  RC_ASSERT(one.has_value());
  RC_ASSERT(two.has_value());
  RC_ASSERT(*one == *two);
}

RC_GTEST_PROP(CanonicalJsonProperty, DoesNotChangeCanonicalText, (std::uint64_t seed, std::uint64_t style)) {
  const auto once = canonical_json(Document(seed, style).write());
  RC_ASSERT(once.has_value());
  const auto twice = canonical_json(*once);
  RC_ASSERT(twice.has_value());
  RC_ASSERT(*twice == *once);
}

// Damages a document and compares the two readers. Our reader may refuse more texts, with an error that says why.
RC_GTEST_PROP(CanonicalJsonProperty, AgreesWithSimdjson, (std::uint64_t seed, std::uint64_t dice)) {
  std::string text = Document(seed, dice).write();
  static constexpr std::string_view BREAKERS = "{}[]\",:\\0-.eE+ tn\x01\xC3";
  SeededRandom random(dice);
  const std::size_t at = random.below(text.size());
  switch (random.below(3)) {
    case 0:
      text[at] = BREAKERS[random.below(BREAKERS.size())];
      break;
    case 1:
      text.erase(at, 1 + random.below(3));
      break;
    default:
      text.insert(at, 1, BREAKERS[random.below(BREAKERS.size())]);
  }
  simdjson::dom::parser parser;
  const bool theirs = parser.parse(text).error() == simdjson::SUCCESS;
  const auto ours = canonical_json(text);
  if (ours) RC_ASSERT(theirs);
  if (!ours && theirs) {
    const std::string& detail = ours.error().detail;
    RC_ASSERT(detail.contains("duplicate") || detail.contains("surrogate") || detail.contains("exactly") ||
              detail.contains("range"));
  }
}

}  // namespace
}  // namespace latchkey
