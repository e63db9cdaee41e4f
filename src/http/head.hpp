// The request gate: reads the head of an HTTP/1.1 (or 1.0) request and refuses whatever two readers could frame
// differently.
//
// Refused with BAD_REQUEST: a bare CR or LF, any control character, obs-fold, a blank before the colon, names that are
// not tokens, no Host or two (HTTP/1.1), Transfer-Encoding other than exactly `chunked`, or with Content-Length, or in
// HTTP/1.0; a Content-Length that is repeated, not digits only, or overflows; a target not in origin-form (`*` for
// OPTIONS); other versions; an empty line before the request; a repeated Authorization, Content-Type or
// Idempotency-Key; an unknown Expect. Refused with HEADERS_TOO_LARGE: what exceeds HeadLimits. After a refusal the
// connection cannot be read further: answer and close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace latchkey::http {

struct HeadLimits {
  std::size_t bytes_max = 16 * 1024;              // the whole head, with its empty line
  std::size_t request_line_bytes_max = 8 * 1024;  // method, target and version
  std::size_t fields_max = 100;
};

struct Field {
  std::string_view name;   // as sent
  std::string_view value;  // without blanks around it; may hold bytes above 0x7f, never control characters but tab
};

// Everything points into the bytes that were parsed. Reuse one Head per connection: its vector keeps its room.
struct Head {
  std::string_view method;
  std::string_view target;
  std::vector<Field> fields;
  std::optional<std::uint64_t> content_length;
  bool is_chunked = false;
  bool is_http_1_0 = false;
  bool keeps_alive = true;        // what the client asked for, or its version's default
  bool expects_continue = false;  // never in HTTP/1.0
};

// The size of the head, or 0 when more bytes are needed; `head` is complete only for a size above 0. Never allocates
// once head.fields has grown. Pure.
Result<std::size_t> parse_head(std::string_view bytes, const HeadLimits& limits, Head& head);

// The first field of that name, in any case.
std::optional<std::string_view> find_field(std::span<const Field> fields, std::string_view name);

}  // namespace latchkey::http
