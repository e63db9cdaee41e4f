// JsonWriter: writes a JsonTree without white space, strings and numbers as RFC 8785 and JSON.stringify both do.
//
// The members of an object are written in one of two orders. Duplicate names are refused in both.
// Reusable: keeps its memory from one tree to the next. Not safe from two threads.
#pragma once

#include <vector>

#include "keying/json_tree.hpp"
#include "keying/member_order.hpp"

namespace latchkey {

enum class MemberOrder {
  UTF16,     // RFC 8785
  PROPERTY,  // what JSON.stringify(JSON.parse(text)) gives
};

class JsonWriter {
 public:
  // How far behind the last byte write() may scribble.
  static constexpr std::size_t SLACK = 64;

  // Writes the value at `index` into room for tree.written_max() + SLACK bytes and returns one past its last byte.
  // Fails with INVALID_JSON on a duplicate name; the room's content is then of no use.
  Result<char*> write(const JsonTree& tree, std::uint32_t index, MemberOrder order, char* out);
  // One string or other scalar, no container.
  static char* write_scalar(const JsonNode& node, char* out);

 private:
  // Each writes the value at `index`; after a fault it writes less.
  char* write_value(std::uint32_t index, char* out);
  char* write_array(std::uint32_t index, char* out);
  char* write_object(std::uint32_t index, char* out);

  const JsonTree* tree_ = nullptr;
  MemberOrder order_ = MemberOrder::UTF16;
  std::vector<MemberRank> members_;  // those of the open objects, innermost last
  Result<void> fault_;
};

}  // namespace latchkey
