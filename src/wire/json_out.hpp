// Writing of JSON: appends to one string without a tree. Members are written in the order of the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "base/uuid.hpp"

namespace latchkey::wire {

// 2026-02-06T10:00:00.123Z, without quotes.
void append_instant(std::string& out, Instant at);
void append_uuid(std::string& out, const Uuid& id);
void append_number(std::string& out, std::uint64_t number);

// One object, from its opening brace to end(). Names are written without escaping.
class ObjectOut {
 public:
  explicit ObjectOut(std::string& out) : out_(out) { out_.push_back('{'); }

  ObjectOut& text(std::string_view name, std::string_view value);
  // For values that need no escaping, such as the names of states.
  ObjectOut& word(std::string_view name, std::string_view value);
  ObjectOut& number(std::string_view name, std::int64_t value);
  ObjectOut& flag(std::string_view name, bool value);
  ObjectOut& instant(std::string_view name, Instant at);
  ObjectOut& id(std::string_view name, const Uuid& id);
  // For text that is JSON already.
  ObjectOut& raw(std::string_view name, std::string_view json);
  // Bytes that are JSON are written as they are, other bytes as "name_base64". Empty bytes write no member.
  ObjectOut& payload(std::string_view name, std::string_view bytes);
  // Writes the name; the caller appends the value to the returned string.
  std::string& member(std::string_view name);
  void end() { out_.push_back('}'); }

 private:
  std::string& out_;
  bool is_first_ = true;
};

// A page of a list, {"items":[…],"next":cursor or null}. `append(text, item)` writes one item.
template <class Items, class Append>
std::string write_page(const Items& items, std::string_view next, Append append) {
  std::string text;
  ObjectOut out(text);
  out.raw("items", "[");
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) text.push_back(',');
    append(text, item);
  }
  text.push_back(']');
  if (next.empty())
    out.raw("next", "null");
  else
    out.text("next", next);
  out.end();
  return text;
}

}  // namespace latchkey::wire
