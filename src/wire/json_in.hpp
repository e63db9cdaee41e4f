// Strict reading of JSON objects, member by member, into plain structs.
//
// simdjson validates the whole text: RFC 8259, UTF-8, nesting depth, and numbers that fit a double or a 64-bit integer.
// Then each member must be known, have the right type and occur once. INVALID_ARGUMENT names the faulty member, and the
// nearest known name for an unknown one. INVALID_JSON means that the text is not a JSON object.
//
// Values are views into a buffer of the calling thread, valid until the thread parses its next object.
#pragma once

#include <simdjson.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"

namespace latchkey::wire {

inline constexpr std::size_t kDepthMax = 128;

struct JsonValue {
  std::string path;  // "retry.first_ms"
  simdjson::dom::element element;
  std::string_view raw;  // the text as sent; empty for members of nested objects
};

using Fault = std::optional<Error>;

template <class Body>
struct Member {
  std::string_view name;
  Fault (*read)(Body& body, const JsonValue& value);
};

struct JsonObject {
  simdjson::dom::object object;
  std::string_view text;
};
// Parses a whole text. An empty text counts as {}.
Result<JsonObject> parse_object(std::string_view text);
// True if the whole text is one JSON value, nested at most kDepthMax levels deep.
bool is_json(std::string_view text);

// Calls visit(index, value) for each member and checks names as described above. Takes at most 32 names.
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
Result<Body> read_members(const JsonObject& parsed, const std::array<Member<Body>, N>& members) {
  Body body;
  if (auto fault = read_object(parsed.object, parsed.text, "", body, members))
    return std::unexpected(*std::move(fault));
  return body;
}

// Reads a member whose value is an object.
template <class Body, std::size_t N>
Fault read_nested(const JsonValue& value, Body& body, const std::array<Member<Body>, N>& members) {
  simdjson::dom::object object;
  if (value.element.get(object) != simdjson::SUCCESS)
    return Error{Code::INVALID_ARGUMENT, "`" + value.path + "` must be an object"};
  return read_object(object, "", value.path + ".", body, members);
}

// Typed readers, for use in a Member's `read`.
Fault read_text(const JsonValue& value, std::string& into);
Fault read_flag(const JsonValue& value, bool& into);
// Reads a whole number from 0 to 2^53 − 1.
Fault read_number(const JsonValue& value, std::uint64_t& into);
Fault read_small_number(const JsonValue& value, std::uint32_t& into, std::uint32_t most);
Fault read_ms(const JsonValue& value, Duration& into);
Fault read_ms(const JsonValue& value, std::optional<Duration>& into);
Fault read_texts(const JsonValue& value, std::vector<std::string>& into);
Error wrong_value(const JsonValue& value, std::string_view must_be);

// Finds the known name with the smallest edit distance. Empty when no name is near.
std::string_view find_nearest(std::string_view name, std::span<const std::string_view> names);
// "`retires` is not known; did you mean `retries`?"
Error unknown_name(std::string_view kind, std::string_view path, std::string_view name,
                   std::span<const std::string_view> names);

}  // namespace latchkey::wire
