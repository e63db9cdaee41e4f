// Lock keys: the text under which a function runs once per tenant, bucket of time and entity.
//
// The usual shape is {function}:{tenant}:{grain}[:{entity}], as in detect-alerts:acme:2026-02-06:a3f2c9e1b4d7. A
// template gives any other: literal text and, in any order,
//   {function} {tenant}                    as they are
//   {5min} {hour} {day} {week} {month} …   the bucket's label, see grain.hpp
//   {grain}                                the label of the request's own grain
//   {entity}                               the 12 digits of the entity hash
//   {input./json/pointer}                  a string, number, true or false in the input; ':' is written %3A and '%' %25
//   {{ }}                                  a brace
// Two placeholders need text between them, and a value of the input never produces a ':'. So with ':' between the
// placeholders, inputs with different values never produce the same key. With other separators the author of the
// template must take care of that.
//
// Pure, except that it reads zone files. INVALID_ARGUMENT for invalid names, templates, zones, keys over 512 bytes and
// control characters; INVALID_JSON for entities and input that canonical_json.hpp refuses. Safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "keying/grain.hpp"

namespace latchkey {

struct LockKeyRequest {
  std::string_view function;
  std::string_view tenant;
  Grain grain;
  Instant at;
  std::string_view time_zone = "UTC";
  std::optional<std::string_view> entities;  // JSON object
  std::optional<std::string_view> input;     // JSON, for {input./…}
};

// {function}:{tenant}:{grain}, and :{entity} if the request has entities.
Result<std::string> compute_lock_key(const LockKeyRequest& request);

// A template is checked once and rendered often. It is a value; rendering is safe from any thread.
class LockKeyTemplate {
 public:
  static Result<LockKeyTemplate> parse(std::string_view text);
  Result<std::string> render(const LockKeyRequest& request) const;

 private:
  friend class LockKeyRendering;

  struct Part {
    enum class Kind { LITERAL, FUNCTION, TENANT, REQUEST_GRAIN, GRAIN, ENTITY, INPUT };
    Kind kind = Kind::LITERAL;
    std::string text;  // LITERAL's text, INPUT's pointer
    Grain grain;
  };
  static Result<Part> parse_placeholder(std::string_view name);
  void add_literal(char c);
  // Parses the placeholder that begins at `at`; returns the position after it.
  Result<std::size_t> add_placeholder(std::string_view text, std::size_t at);

  std::vector<Part> parts_;
};

}  // namespace latchkey
