#include "config/read_members.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.hpp"

namespace latchkey::config {
namespace {

class Reader final : public Members {
 public:
  Reader(const Node& node, const std::string& path, std::vector<Fault>& faults)
      : node_(node), path_(path), faults_(faults) {}

  void value(Value value) override {
    const Member* const member = take(value.info);
    if (!member) return;
    if (auto wrong = value.read(member->value)) add(*member, *std::move(wrong));
  }

  void object(Object object) override {
    const Member* const member = take(object.info);
    if (!member) return;
    if (object.read_text && member->value.is_scalar()) {
      if (auto wrong = object.read_text(member->value.text)) add(*member, *std::move(wrong));
      return;
    }
    if (!member->value.is_mapping()) return add(*member, "must be a mapping of members");
    object.begin();
    read_members(member->value, inner(member->name), object.describe, faults_);
  }

  void collection(Collection collection) override {
    const Member* const member = take(collection.info);
    if (!member) return;
    const Node& node = member->value;
    if (collection.shape == Collection::Shape::list) {
      if (!node.is_sequence()) return add(*member, "must be a list");
      if (node.items.size() > collection.most) return add(*member, fmt::format("has over {} items", collection.most));
      for (std::size_t i = 0; i < node.items.size(); ++i)
        read_element(node.items[i], node.items[i].at, fmt::format("{}[{}]", inner(member->name), i),
                     collection.add(""));
      return;
    }
    // `functions:` with nothing below it reads as null: an empty mapping.
    if (node.kind != Node::Kind::null && !node.is_mapping()) return add(*member, "must be a mapping of names");
    if (node.members.size() > collection.most) return add(*member, fmt::format("has over {} entries", collection.most));
    for (const Member& each : node.members)
      read_element(each.value, each.at, inner(member->name) + "." + each.name, collection.add(each.name));
  }

  void rule(std::function<std::optional<std::string>()> check) override { rules_.push_back(std::move(check)); }

  // After all members were described.
  void finish() {
    for (const Member& member : node_.members) {
      if (std::ranges::find(known_, member.name) != known_.end()) continue;
      const auto near = find_nearest(member.name, known_);
      add(member,
          fmt::format("`{}` is not known{}", member.name,
                      near ? fmt::format("; did you mean `{}`?", *near) : std::string()),
          false);
    }
    for (const std::string& name : missing_) faults_.push_back({node_.at, path_, "`" + name + "` is missing"});
    for (const auto& rule : rules_)
      if (auto wrong = rule()) faults_.push_back({node_.at, path_, *std::move(wrong)});
  }

 private:
  std::string inner(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }

  void add(const Member& member, std::string message, bool names_member = true) {
    if (names_member) message = "`" + member.name + "` " + message;
    faults_.push_back({member.value.at.line > 0 ? member.value.at : member.at, inner(member.name), std::move(message)});
  }

  void read_element(const Node& node, Position at, const std::string& path, const Describe& describe) {
    if (!node.is_mapping()) {
      faults_.push_back({at, path, "`" + path + "` must be a mapping of members"});
      return;
    }
    read_members(node, path, describe, faults_);
  }

  // The member of this name; null when it is absent or null.
  const Member* take(const Info& info) {
    known_.emplace_back(info.name);
    const auto member = std::ranges::find(node_.members, info.name, &Member::name);
    if (member == node_.members.end()) {
      if (info.required) missing_.emplace_back(info.name);
      return nullptr;
    }
    return &*member;
  }

  const Node& node_;
  const std::string& path_;
  std::vector<Fault>& faults_;
  std::vector<std::string> known_, missing_;
  std::vector<std::function<std::optional<std::string>()>> rules_;
};

}  // namespace

void read_members(const Node& node, const std::string& path, const Describe& describe, std::vector<Fault>& faults) {
  Reader reader(node, path, faults);
  describe(reader);
  reader.finish();
}

}  // namespace latchkey::config
