#include "keying/json_pointer.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

namespace latchkey {
namespace {

std::string resolve_token(std::string_view token) {
  std::string resolved;
  for (std::size_t i = 0; i < token.size(); ++i) resolved += token[i] != '~' ? token[i] : token[++i] == '0' ? '~' : '/';
  return resolved;
}

std::optional<std::uint32_t> find_member(const JsonTree& tree, std::uint32_t object, std::string_view name) {
  std::optional<std::uint32_t> found;
  const std::uint32_t end = tree.next(object);
  for (std::uint32_t at = object + 1; at != end; at = tree.next(at + 1)) {
    if (tree.node(at).content() != name) continue;
    if (found) return std::nullopt;
    found = at + 1;
  }
  return found;
}

std::optional<std::uint32_t> find_element(const JsonTree& tree, std::uint32_t array, std::string_view token) {
  std::uint64_t index = 0;
  const char* const end = token.data() + token.size();
  if (token.empty() || (token[0] == '0' && token.size() > 1) || std::from_chars(token.data(), end, index).ptr != end ||
      index >= tree.node(array).count)
    return std::nullopt;
  std::uint32_t at = array + 1;
  for (; index > 0; --index) at = tree.next(at);
  return at;
}

}  // namespace

Result<void> check_json_pointer(std::string_view pointer) {
  bool good = pointer.empty() || pointer[0] == '/';
  for (std::size_t at = pointer.find('~'); at != pointer.npos; at = pointer.find('~', at + 1))
    good = good && at + 1 < pointer.size() && (pointer[at + 1] == '0' || pointer[at + 1] == '1');
  if (!good) return fail(Code::INVALID_ARGUMENT, fmt::format("'{}' is not a JSON pointer such as /order/id", pointer));
  return {};
}

const JsonNode* find_pointed(const JsonTree& tree, std::string_view pointer) {
  std::uint32_t at = 0;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string token = resolve_token(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.find('/'), pointer.size()));
    std::optional<std::uint32_t> next;
    if (tree.node(at).kind == JsonKind::OBJECT) next = find_member(tree, at, token);
    if (tree.node(at).kind == JsonKind::ARRAY) next = find_element(tree, at, token);
    if (!next) return nullptr;
    at = *next;
  }
  return &tree.node(at);
}

}  // namespace latchkey
