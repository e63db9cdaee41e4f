// Members: the members of a config object, described once. From one description come the reader (read_members.hpp), the
// JSON Schema (schema.hpp) and the JSON that the store has (write_members.hpp).
//
//   void describe(Members& members, RateLimit& rate) {
//     members.value(number("count", rate.count, {1, 1'000'000}, "Starts per window."));
//     members.value(duration("per", rate.per, {1s, 24h}, "The window's length."));
//   }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/document.hpp"

namespace latchkey::config {

class Members;
using Describe = std::function<void(Members&)>;

struct Info {
  std::string_view name;
  std::string_view help;  // one sentence; it becomes the schema's description
  bool required = false;
};

// A member whose value is one scalar, or a list or mapping of scalars. config/values.hpp makes them.
struct Value {
  Info info;
  std::string schema;  // JSON: the type and its limits
  // None, or what the value must be: "a duration such as 30s".
  std::function<std::optional<std::string>(const Node&)> read;
  std::function<bool()> is_set;  // false: write() is not called, the member is left out
  std::function<void(std::string& json)> write;
};

// A member whose value is an object.
struct Object {
  Info info;
  Describe describe;            // of the field, after begin()
  std::function<void()> begin;  // the member exists: makes the field that describe() binds
  std::function<bool()> is_set;
  // For a member that may also be a plain text, such as `retry: background`. None, or what it must be. Optional.
  std::function<std::optional<std::string>(const std::string&)> read_text;
  std::string text_schema;
};

// A member whose value is a list of objects, or a mapping of names to objects.
struct Collection {
  Info info;
  enum class Shape : std::uint8_t { list, mapping } shape = Shape::list;
  std::size_t most = 10'000;
  // Adds an element of this name (empty in a list) and returns its description.
  std::function<Describe(const std::string& name)> add;
  // Calls back for each element, for writing. Empty: the collection is never written.
  std::function<void(const std::function<void(const std::string& name, const Describe&)>&)> each;
};

class Members {
 public:
  virtual ~Members() = default;
  virtual void value(Value value) = 0;
  virtual void object(Object object) = 0;
  virtual void collection(Collection collection) = 0;
  // A rule over several members, checked after all of them were read. None, or the fault's text.
  virtual void rule(std::function<std::optional<std::string>()> check) { (void)check; }
};

}  // namespace latchkey::config
