#include "keying/json_writer.hpp"

#include <cstring>

#include "keying/json_number.hpp"
#include "keying/json_string.hpp"

namespace latchkey {
namespace {

// Most tokens are short, so copying whole blocks is faster than memcpy of the exact size. The next token overwrites the
// rest of the block.
char* copy_text(const char* text, std::size_t size, char* out) {
  constexpr std::size_t BLOCK = 32;
  if (size > 4 * BLOCK) [[unlikely]]
    return static_cast<char*>(std::memcpy(out, text, size)) + size;
  std::memcpy(out, text, BLOCK);
  for (std::size_t done = BLOCK; done < size; done += BLOCK) std::memcpy(out + done, text + done, BLOCK);
  return out + size;
}

}  // namespace

char* JsonWriter::write_scalar(const JsonNode& node, char* out) {
  if (node.kind <= JsonKind::STRING) [[likely]]
    return copy_text(node.text, node.size, out);
  if (node.kind == JsonKind::DOUBLE) return write_number(node.number, out);
  *out++ = '"';
  out = write_escaped(node.content(), out);
  *out++ = '"';
  return out;
}

Result<char*> JsonWriter::write(const JsonTree& tree, std::uint32_t index, MemberOrder order, char* out) {
  tree_ = &tree;
  order_ = order;
  members_.clear();
  fault_ = {};
  out = write_value(index, out);
  if (!fault_) return std::unexpected(std::move(fault_.error()));
  return out;
}

char* JsonWriter::write_value(std::uint32_t index, char* out) {
  const JsonNode& node = tree_->node(index);
  if (node.kind == JsonKind::OBJECT) return write_object(index, out);
  if (node.kind == JsonKind::ARRAY) return write_array(index, out);
  return write_scalar(node, out);
}

char* JsonWriter::write_array(std::uint32_t index, char* out) {
  const std::uint32_t end = tree_->next(index);
  *out++ = '[';
  for (std::uint32_t at = index + 1; at != end && fault_; at = tree_->next(at)) {
    if (at != index + 1) *out++ = ',';
    out = write_value(at, out);
  }
  *out++ = ']';
  return out;
}

char* JsonWriter::write_object(std::uint32_t index, char* out) {
  const JsonNode& node = tree_->node(index);
  const std::size_t first = members_.size();
  for (std::uint32_t at = index + 1; at != node.size; at = tree_->next(at + 1))
    members_.push_back(rank_member(*tree_, at));
  const std::span members = std::span(members_).subspan(first);
  if (auto sorted = sort_members(*tree_, members); !sorted) [[unlikely]]
    return fault_ = std::move(sorted), out;
  if (order_ == MemberOrder::PROPERTY) order_as_properties(*tree_, members);
  *out++ = '{';
  for (std::uint64_t i = 0; i < node.count && fault_; ++i) {
    if (i != 0) *out++ = ',';
    const std::uint32_t name = members_[first + i].name;  // the span is invalid after a nested object grows the vector
    out = write_scalar(tree_->node(name), out);
    *out++ = ':';
    out = write_value(name + 1, out);
  }
  *out++ = '}';
  members_.resize(first);
  return out;
}

}  // namespace latchkey
