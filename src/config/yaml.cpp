// parse_yaml() and parse_json(): texts into trees of nodes.
#include <simdjson.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/utf8.hpp"
#include "config/document.hpp"

namespace latchkey::config {
namespace {

Position position_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Builds the tree from the parser's events. Ends the parse with an exception when the text nests too deep.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<Fault>& faults) : faults_(faults) {}
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add({.at = position_of(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    faults_.push_back({position_of(mark), "", "aliases (`*name`) are not supported: write the value"});
    add({.at = position_of(mark)});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    const bool quoted = tag == "!";
    if (!quoted && tag != "?" && !tag.empty())
      faults_.push_back({position_of(mark), "", "tags (`!name`) are not supported"});
    const bool is_null = !quoted && (value == "~" || value == "null" || value.empty());
    if (is_null && !is_name_next()) return add({.at = position_of(mark)});
    add({.kind = Node::Kind::scalar, .quoted = quoted, .text = value, .at = position_of(mark)});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open({.kind = Node::Kind::sequence, .at = position_of(mark)});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open({.kind = Node::Kind::mapping, .at = position_of(mark)});
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<Member> name;  // of a mapping: the member whose value comes next
  };

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) faults_.push_back({position_of(mark), "", "anchors (`&name`) are not supported"});
  }
  bool is_name_next() const { return !open_.empty() && open_.back().node.is_mapping() && !open_.back().name; }
  void open(Node node) {
    if (open_.size() >= static_cast<std::size_t>(kDepthMax))
      throw YAML::ParserException(YAML::Mark(), "the text nests deeper than 64 levels");
    open_.push_back({std::move(node), {}});
  }
  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }
  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.name) {
      if (!node.is_scalar()) faults_.push_back({node.at, "", "a member's name must be text"});
      if (parent.node.find(node.text) != nullptr)
        faults_.push_back({node.at, "", "`" + node.text + "` occurs twice here"});
      parent.name = Member{node.text, node.at, {}};
    } else {
      parent.name->value = std::move(node);
      parent.node.members.push_back(*std::move(parent.name));
      parent.name.reset();
    }
  }

  std::vector<Fault>& faults_;
  std::vector<Open> open_;
  Node root_;
};

Node to_node(const simdjson::dom::element& element, std::vector<Fault>& faults, const std::string& path) {
  switch (element.type()) {
    case simdjson::dom::element_type::NULL_VALUE:
      return {};
    case simdjson::dom::element_type::STRING:
      return {.kind = Node::Kind::scalar, .quoted = true, .text = std::string(std::string_view(element))};
    case simdjson::dom::element_type::ARRAY: {
      Node node{.kind = Node::Kind::sequence};
      for (const auto item : simdjson::dom::array(element)) node.items.push_back(to_node(item, faults, path));
      return node;
    }
    case simdjson::dom::element_type::OBJECT: {
      Node node{.kind = Node::Kind::mapping};
      for (const auto [name, value] : simdjson::dom::object(element)) {
        const std::string inner = path.empty() ? std::string(name) : path + "." + std::string(name);
        if (node.find(name) != nullptr) faults.push_back({{}, inner, "occurs twice"});
        node.members.push_back({std::string(name), {}, to_node(value, faults, inner)});
      }
      return node;
    }
    default:
      return {.kind = Node::Kind::scalar, .text = simdjson::minify(element)};
  }
}

}  // namespace

Node parse_yaml(std::string_view text, std::vector<Fault>& faults) {
  if (find_invalid_utf8(text) != std::string_view::npos) {
    faults.push_back({{1, 1}, "", "the file is not UTF-8 text"});
    return {};
  }
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(faults);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Node root = builder.take();
    if (TreeBuilder second(faults); parser.HandleNextDocument(second))
      faults.push_back({{1, 1}, "", "the file has more than one YAML document"});
    return root;
  } catch (const YAML::Exception& broken) {
    const Position at = broken.mark.is_null() ? Position{1, 1} : position_of(broken.mark);
    faults.push_back({at, "", "not YAML: " + broken.msg});
    return {};
  }
}

Node parse_json(std::string_view text, std::vector<Fault>& faults) {
  simdjson::dom::parser parser;
  if (parser.allocate(std::max<std::size_t>(text.size(), 64), kDepthMax) == simdjson::SUCCESS) {
    simdjson::dom::element element;
    if (parser.parse(text.data(), text.size()).get(element) == simdjson::SUCCESS) return to_node(element, faults, "");
  }
  faults.push_back({{}, "", "the body is not a JSON object, or nests deeper than 64 levels"});
  return {};
}

}  // namespace latchkey::config
