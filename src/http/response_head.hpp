// parse_response_head: parses the head of a response, as strictly as parse_head parses requests. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "http/head.hpp"

namespace latchkey::http {

// All views point into the parsed bytes.
struct ResponseHead {
  int status = 0;
  std::vector<Field> fields;
  std::optional<std::uint64_t> content_length;
  bool is_chunked = false;
  bool is_keep_alive = true;
};

// Returns the size of the head, or 0 when more bytes are needed. Fails with REPLY_LOST when the head is malformed.
Result<std::size_t> parse_response_head(std::string_view bytes, ResponseHead& head);

}  // namespace latchkey::http
