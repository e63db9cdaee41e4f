// MemberScan: finds the text of each member's value in an object's text. simdjson's tree does not store it, and inputs
// and results are stored byte for byte as sent. The text must be valid JSON. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace latchkey::wire {

class MemberScan {
 public:
  // `object` is the object's whole text, with or without white space around it.
  explicit MemberScan(std::string_view object) : text_(object), at_(object.find('{') + 1) {}

  // Returns the next member's value without white space around it. Call it at most once per member.
  std::string_view next_value() {
    while (text_[at_] != '"') ++at_;
    skip_string();
    while (text_[at_] != ':') ++at_;
    ++at_;
    while (is_space(text_[at_])) ++at_;
    const std::size_t from = at_;
    skip_value();
    return text_.substr(from, at_ - from);
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool ends_scalar(char c) { return is_space(c) || c == ',' || c == '}' || c == ']'; }

  void skip_string() {
    for (++at_; text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }
  void skip_value() {
    if (text_[at_] == '"') return skip_string();
    if (text_[at_] == '{' || text_[at_] == '[') return skip_container();
    while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
  }
  void skip_container() {
    std::size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    } while (depth > 0);
  }

  std::string_view text_;
  std::size_t at_;
};

}  // namespace latchkey::wire
