// JsonWriter: writes a JsonTree without white space, strings and numbers as RFC 8785 and JSON.stringify both do.
//
// The members of an object are written in one of two orders. Duplicate names are refused in both.
// Reusable: the memory is reused for the next tree. One thread at a time.
#pragma once

#include <vector>

#include "keying/json_tree.hpp"
#include "keying/member_order.hpp"

namespace latchkey {

enum class MemberOrder {
  UTF16,     // RFC 8785
  PROPERTY,  // the order of JSON.stringify(JSON.parse(text))
};

class JsonWriter {
 public:
  // The number of bytes after the last one that write() may overwrite.
  static constexpr std::size_t SLACK = 64;

  // Writes the value at `index` to `out`, which must have tree.written_max() + SLACK bytes. Returns one past the last
  // byte. Fails with INVALID_JSON on a duplicate name; the content of `out` is then undefined.
  Result<char*> write(const JsonTree& tree, std::uint32_t index, MemberOrder order, char* out);
  // Writes a string or another scalar, not a container.
  static char* write_scalar(const JsonNode& node, char* out);

 private:
  // Each function writes the value at `index`. After a fault it stops early.
  char* write_value(std::uint32_t index, char* out);
  char* write_array(std::uint32_t index, char* out);
  char* write_object(std::uint32_t index, char* out);

  const JsonTree* tree_ = nullptr;
  MemberOrder order_ = MemberOrder::UTF16;
  std::vector<MemberRank> members_;  // the members of the open objects, innermost last
  Result<void> fault_;
};

}  // namespace latchkey
