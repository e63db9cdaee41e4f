#include "keying/entity_hash.hpp"

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "keying/json_writer.hpp"

namespace latchkey {
namespace {

constexpr std::size_t HASH_DIGITS = 12;

Result<std::vector<MemberRank>> list_sorted_members(const JsonTree& tree) {
  if (tree.root().kind != JsonKind::OBJECT) return fail(Code::INVALID_JSON, "entities must be a JSON object");
  std::vector<MemberRank> members;
  for (std::uint32_t at = 1; at != tree.next(0); at = tree.next(at + 1)) members.push_back(rank_member(tree, at));
  if (auto sorted = sort_members(tree, members); !sorted) return std::unexpected(std::move(sorted.error()));
  return members;
}

}  // namespace

Result<std::string> compute_entity_text(std::string_view entities) {
  JsonTree tree;
  if (auto parsed = tree.parse(entities); !parsed) return std::unexpected(std::move(parsed.error()));
  const auto members = list_sorted_members(tree);
  if (!members) return std::unexpected(members.error());
  // {"k":v} becomes [["k",v]]: two more bytes for each member.
  std::string text(tree.written_max() + 2 * members->size() + JsonWriter::SLACK, '\0');
  char* out = text.data();
  JsonWriter writer;
  *out++ = '[';
  for (const MemberRank& member : *members) {
    if (&member != members->data()) *out++ = ',';
    *out++ = '[';
    out = JsonWriter::write_scalar(tree.node(member.name), out);
    *out++ = ',';
    const auto end = writer.write(tree, member.name + 1, MemberOrder::PROPERTY, out);
    if (!end) return std::unexpected(end.error());
    out = *end;
    *out++ = ']';
  }
  *out++ = ']';
  text.resize(static_cast<std::size_t>(out - text.data()));
  return text;
}

Result<std::string> compute_entity_hash(std::string_view entities) {
  const auto text = compute_entity_text(entities);
  if (!text) return std::unexpected(text.error());
  return to_hex(sha256(*text)).substr(0, HASH_DIGITS);
}

}  // namespace latchkey
