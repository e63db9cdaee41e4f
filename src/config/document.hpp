// Document: a YAML or JSON text as a tree of nodes, each with its line and column. Only what configs need of YAML:
// mappings with text names, sequences and scalars; no tags. Anchors and aliases are refused, so a small file stays
// small in memory. A name that occurs twice in one mapping is a fault.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace latchkey::config {

// One line and column of a file, from 1. Line 0: the text has no lines, as a request's body.
struct Position {
  int line = 0, column = 0;
  bool operator==(const Position&) const = default;
};

// One thing that is wrong with a config. `path` names the member: "functions.sync.retry".
struct Fault {
  Position at;
  std::string path;
  std::string message;
};

struct Member;

struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  bool quoted = false;  // a scalar that can only be text
  std::string text;     // of a scalar
  std::vector<Node> items;
  std::vector<Member> members;
  Position at;

  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_mapping() const { return kind == Kind::mapping; }
  bool is_sequence() const { return kind == Kind::sequence; }
  // Null when there is no member of this name.
  const Node* find(std::string_view name) const;
};

struct Member {
  std::string name;
  Position at;
  Node value;
};

inline constexpr int kDepthMax = 64;

// Adds to `faults` what is wrong; the tree is then not to be used.
Node parse_yaml(std::string_view text, std::vector<Fault>& faults);
Node parse_json(std::string_view text, std::vector<Fault>& faults);

// The node as JSON. A plain scalar that reads as a number, true, false or null is written as such.
std::string to_json(const Node& node);

// "file:line:column: message", or "`path`: message" for a text without lines.
std::string describe(const Fault& fault, std::string_view file);

}  // namespace latchkey::config
