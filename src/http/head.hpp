// parse_head: parses the head of an HTTP/1.1 (or 1.0) request and rejects every head that two parsers could frame
// differently.
//
// Rejected with BAD_REQUEST:
// - a bare CR or LF, any control character, obs-fold, a blank before the colon, a name that is not a token;
// - no Host or two (HTTP/1.1);
// - Transfer-Encoding other than exactly `chunked`, or together with Content-Length, or in HTTP/1.0;
// - a Content-Length that is repeated, not digits only, or too large for 64 bits;
// - a target that is not in origin-form (`*` for OPTIONS), another version, an empty line before the request;
// - a repeated Authorization, Content-Type, Idempotency-Key or Latchkey-Tenant; an unknown Expect.
// Rejected with HEADERS_TOO_LARGE: a head that exceeds HeadLimits. After a rejection the rest of the connection cannot
// be parsed: the server responds and closes.
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
  std::size_t bytes_max = 16 * 1024;              // the whole head, including the empty line
  std::size_t request_line_bytes_max = 8 * 1024;  // method, target and version
  std::size_t fields_max = 100;
};

struct Field {
  std::string_view name;   // as the client sent it
  std::string_view value;  // trimmed; may contain bytes above 0x7f; the only control character is tab
};

// All views point into the parsed bytes. A connection reuses one Head, so its vector allocates once.
struct Head {
  std::string_view method;
  std::string_view target;
  std::vector<Field> fields;
  std::optional<std::uint64_t> content_length;
  bool is_chunked = false;
  bool is_http_1_0 = false;
  bool is_keep_alive = true;      // from the Connection header, or the default of the version
  bool expects_continue = false;  // always false in HTTP/1.0
};

// Returns the size of the head, or 0 when more bytes are needed. `head` is complete only when the size is above 0. Does
// not allocate once head.fields has grown. Pure.
Result<std::size_t> parse_head(std::string_view bytes, const HeadLimits& limits, Head& head);

// Finds the first field of that name, ignoring case.
std::optional<std::string_view> find_field(std::span<const Field> fields, std::string_view name);

}  // namespace latchkey::http
