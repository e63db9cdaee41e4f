// Reads the head of a response, as strictly as the gate reads requests. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "http/head.hpp"

namespace latchkey::http {

// Points into the bytes that were parsed.
struct ResponseHead {
  int status = 0;
  std::vector<Field> fields;
  std::optional<std::uint64_t> content_length;
  bool is_chunked = false;
  bool keeps_alive = true;
};

// The size of the head, or 0 when more bytes are needed. REPLY_LOST when it cannot be understood.
Result<std::size_t> parse_response_head(std::string_view bytes, ResponseHead& head);

}  // namespace latchkey::http
