#include "config/document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "http/problem.hpp"

namespace latchkey::config {
namespace {

bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - from;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const std::size_t first = at, whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (at < text.size() && text[at] == '.' && (++at, digits() == 0)) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

void append_json(std::string& out, const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      out += "null";
      return;
    case Node::Kind::scalar: {
      const bool literal = !node.quoted && (node.text == "true" || node.text == "false" || is_json_number(node.text));
      if (literal) {
        out += node.text;
      } else {
        http::append_json_string(out, node.text);
      }
      return;
    }
    case Node::Kind::sequence: {
      out += '[';
      for (const Node& item : node.items) {
        if (&item != &node.items.front()) out += ',';
        append_json(out, item);
      }
      out += ']';
      return;
    }
    case Node::Kind::mapping: {
      out += '{';
      for (const Member& member : node.members) {
        if (&member != &node.members.front()) out += ',';
        http::append_json_string(out, member.name);
        out += ':';
        append_json(out, member.value);
      }
      out += '}';
      return;
    }
  }
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  const auto member = std::ranges::find(members, name, &Member::name);
  return member == members.end() ? nullptr : &member->value;
}

std::string to_json(const Node& node) {
  std::string out;
  append_json(out, node);
  return out;
}

std::string describe(const Fault& fault, std::string_view file) {
  if (fault.at.line > 0) return fmt::format("{}:{}:{}: {}", file, fault.at.line, fault.at.column, fault.message);
  return fault.path.empty() ? fault.message : fmt::format("`{}`: {}", fault.path, fault.message);
}

}  // namespace latchkey::config
