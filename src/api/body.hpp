// Request bodies: strict JSON objects (wire/json_in.hpp) sent with a JSON media type.
#pragma once

#include <array>

#include "base/error.hpp"
#include "http/message.hpp"
#include "wire/json_in.hpp"

namespace latchkey::api {

// Parses the body as an object; an absent body counts as {}. MEDIA_TYPE unless the Content-Type is JSON and the body is
// sent without a Content-Encoding. Values are valid until the thread parses its next body.
Result<wire::JsonObject> parse_body(const http::Request& request);

template <class Body, std::size_t N>
Result<Body> read_body(const http::Request& request, const std::array<wire::Member<Body>, N>& members) {
  const auto parsed = parse_body(request);
  if (!parsed) return std::unexpected(parsed.error());
  return wire::read_members(*parsed, members);
}

}  // namespace latchkey::api
