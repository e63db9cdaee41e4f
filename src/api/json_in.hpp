// Request bodies: strict JSON objects, read member by member into plain structs.
//
// simdjson checks the whole text (RFC 8259, UTF-8, depth, numbers that a double or a 64-bit integer holds); then every
// member must be a known one, of the right type, and there only once: INVALID_ARGUMENT names it, and the nearest known
// name when it is not known. INVALID_JSON for what is no JSON object. Values are views until the thread's next body.
#pragma once

#include <simdjson.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"
#include "http/message.hpp"

namespace latchkey::api {

inline constexpr std::size_t kDepthMax = 128;

// One member's value.
struct JsonValue {
  std::string path;  // "retry.first_ms"
  simdjson::dom::element element;
  std::string_view raw;  // its text as sent; of a body's own members only
};

using Fault = std::optional<Error>;

template <class Body>
struct Member {
  std::string_view name;
  Fault (*read)(Body& body, const JsonValue& value);
};

// The whole body as an object; an absent body counts as {}. MEDIA_TYPE unless its Content-Type is JSON.
struct JsonBody {
  simdjson::dom::object object;
  std::string_view text;
};
Result<JsonBody> parse_body(const http::Request& request);
// Whether simdjson takes the whole text as one JSON value.
bool is_json(std::string_view text);

// Calls visit(index, value) for each member; the rest as said above. Names at most 32.
using Visit = Fault (*)(void* body, std::size_t index, const JsonValue& value, const void* members);
Fault visit_members(const simdjson::dom::object& object, std::string_view text, std::string_view prefix,
                    std::span<const std::string_view> names, void* body, const void* members, Visit visit);

template <class Body, std::size_t N>
Fault read_object(const simdjson::dom::object& object, std::string_view text, std::string_view prefix, Body& body,
                  const std::array<Member<Body>, N>& members) {
  static_assert(N <= 32);
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = members[i].name;
  return visit_members(object, text, prefix, names, &body, members.data(),
                       [](void* into, std::size_t index, const JsonValue& value, const void* table) {
                         return static_cast<const Member<Body>*>(table)[index].read(*static_cast<Body*>(into), value);
                       });
}

template <class Body, std::size_t N>
Result<Body> read_body(const http::Request& request, const std::array<Member<Body>, N>& members) {
  const auto parsed = parse_body(request);
  if (!parsed) return std::unexpected(parsed.error());
  Body body;
  if (auto fault = read_object(parsed->object, parsed->text, "", body, members))
    return std::unexpected(*std::move(fault));
  return body;
}

// A member that is itself an object.
template <class Body, std::size_t N>
Fault read_nested(const JsonValue& value, Body& body, const std::array<Member<Body>, N>& members) {
  simdjson::dom::object object;
  if (value.element.get(object) != simdjson::SUCCESS)
    return Error{Code::INVALID_ARGUMENT, "`" + value.path + "` must be an object"};
  return read_object(object, "", value.path + ".", body, members);
}

// Typed readers, for use in a Member's read.
Fault read_text(const JsonValue& value, std::string& into);
Fault read_flag(const JsonValue& value, bool& into);
// A whole number from 0 to 2^53 − 1.
Fault read_number(const JsonValue& value, std::uint64_t& into);
Fault read_small_number(const JsonValue& value, std::uint32_t& into, std::uint32_t most);
Fault read_ms(const JsonValue& value, Duration& into);
Fault read_ms(const JsonValue& value, std::optional<Duration>& into);
Fault read_texts(const JsonValue& value, std::vector<std::string>& into);
Error wrong_value(const JsonValue& value, std::string_view must_be);

// The known name that is most like this one; empty when none is near.
std::string_view find_nearest(std::string_view name, std::span<const std::string_view> names);
// "`retires` is not known; did you mean `retries`?"
Error unknown_name(std::string_view kind, std::string_view path, std::string_view name,
                   std::span<const std::string_view> names);

}  // namespace latchkey::api
