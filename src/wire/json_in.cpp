#include "wire/json_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "wire/json_scan.hpp"

namespace latchkey::wire {
namespace {

using simdjson::dom::element;

constexpr std::size_t kBufferRetainMax = std::size_t{256} << 10;

// A thread's parser with its own copy of the text, followed by simdjson's padding.
class Parser {
 public:
  Result<element> parse(std::string_view text) {
    if (buffer_.size() < text.size() + simdjson::SIMDJSON_PADDING)
      buffer_.resize(text.size() + simdjson::SIMDJSON_PADDING);
    std::memcpy(buffer_.data(), text.data(), text.size());
    text_ = {buffer_.data(), text.size()};
    if (parser_.capacity() < text.size() || parser_.max_depth() != kDepthMax)
      if (parser_.allocate(std::max<std::size_t>(text.size(), 4096), kDepthMax) != simdjson::SUCCESS)
        return fail(Code::INTERNAL, "out of memory");
    element root;
    if (const auto error = parser_.parse(buffer_.data(), text.size(), false).get(root))
      return fail(Code::INVALID_JSON, explain(error));
    return root;
  }
  std::string_view text() const { return text_; }
  // Frees the memory of an unusually large text.
  void shrink() {
    if (buffer_.size() <= kBufferRetainMax) return;
    buffer_ = {};
    parser_ = simdjson::dom::parser();
  }

 private:
  static std::string explain(simdjson::error_code error) {
    if (error == simdjson::DEPTH_ERROR) return fmt::format("it is nested deeper than {} levels", kDepthMax);
    if (error == simdjson::NUMBER_ERROR)
      return "a number is malformed or too large: send numbers beyond 64 bits as strings";
    return simdjson::error_message(error);
  }

  std::vector<char> buffer_;
  std::string_view text_;
  simdjson::dom::parser parser_;
};

Parser& object_parser() {
  static thread_local Parser parser;
  return parser;
}

}  // namespace

Result<JsonObject> parse_object(std::string_view text) {
  Parser& parser = object_parser();
  parser.shrink();
  const auto root = parser.parse(text.empty() ? "{}" : text);
  if (!root) return std::unexpected(root.error());
  simdjson::dom::object object;
  if (root->get(object) != simdjson::SUCCESS) return fail(Code::INVALID_JSON, "the body must be a JSON object");
  return JsonObject{object, parser.text()};
}

bool is_json(std::string_view text) {
  static thread_local Parser parser;
  const bool good = parser.parse(text).has_value();
  parser.shrink();
  return good;
}

Fault visit_members(const simdjson::dom::object& object, std::string_view text, std::string_view prefix,
                    std::span<const std::string_view> names, void* body, const void* members, Visit visit) {
  std::uint32_t seen = 0;
  MemberScan scan(text);
  for (const auto& [name, element] : object) {
    const std::string_view raw = text.empty() ? text : scan.next_value();
    const auto known = std::ranges::find(names, name);
    if (known == names.end()) return unknown_name("member", prefix, name, names);
    const auto index = static_cast<std::size_t>(known - names.begin());
    const std::uint32_t bit = std::uint32_t{1} << index;
    if (seen & bit) return Error{Code::INVALID_JSON, fmt::format("`{}{}` is there twice", prefix, name)};
    seen |= bit;
    std::string path(prefix);
    path.append(name);
    if (auto fault = visit(body, index, {std::move(path), element, raw}, members)) return fault;
  }
  return std::nullopt;
}

Error wrong_value(const JsonValue& value, std::string_view must_be) {
  return {Code::INVALID_ARGUMENT, fmt::format("`{}` must be {}", value.path, must_be)};
}

Fault read_text(const JsonValue& value, std::string& into) {
  std::string_view text;
  if (value.element.get(text) != simdjson::SUCCESS) return wrong_value(value, "a string");
  into = text;
  return std::nullopt;
}

Fault read_flag(const JsonValue& value, bool& into) {
  if (value.element.get(into) != simdjson::SUCCESS) return wrong_value(value, "true or false");
  return std::nullopt;
}

Fault read_number(const JsonValue& value, std::uint64_t& into) {
  if (value.element.get(into) != simdjson::SUCCESS || into >= (std::uint64_t{1} << 53))
    return wrong_value(value, "a whole number from 0 to 9007199254740991");
  return std::nullopt;
}

Fault read_small_number(const JsonValue& value, std::uint32_t& into, std::uint32_t most) {
  std::uint64_t number = 0;
  if (value.element.get(number) != simdjson::SUCCESS || number > most)
    return wrong_value(value, fmt::format("a whole number from 0 to {}", most));
  into = static_cast<std::uint32_t>(number);
  return std::nullopt;
}

Fault read_ms(const JsonValue& value, Duration& into) {
  std::uint64_t ms = 0;
  // Some languages write every number as a float: 10000.0.
  if (double whole = 0; value.element.is_double() && value.element.get(whole) == simdjson::SUCCESS && whole >= 0 &&
                        whole < static_cast<double>(std::uint64_t{1} << 53) && std::floor(whole) == whole)
    ms = static_cast<std::uint64_t>(whole);
  else if (read_number(value, ms))
    return wrong_value(value, "a whole number of milliseconds");
  into = Duration{static_cast<std::int64_t>(ms)};
  return std::nullopt;
}

Fault read_ms(const JsonValue& value, std::optional<Duration>& into) { return read_ms(value, into.emplace()); }

Fault read_texts(const JsonValue& value, std::vector<std::string>& into) {
  simdjson::dom::array array;
  if (value.element.get(array) != simdjson::SUCCESS) return wrong_value(value, "an array of strings");
  for (const element& item : array) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) return wrong_value(value, "an array of strings");
    into.emplace_back(text);
  }
  return std::nullopt;
}

std::string_view find_nearest(std::string_view name, std::span<const std::string_view> names) {
  if (name.size() > 64) return {};
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::vector<std::size_t> row;
  for (const std::string_view known : names) {
    row.resize(known.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < name.size(); ++i) {  // Levenshtein's distance
      std::size_t corner = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < known.size(); ++j) {
        const std::size_t changed = corner + (name[i] == known[j] ? 0 : 1);
        corner = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
      }
    }
    if (row.back() < least) least = row.back(), nearest = known;
  }
  return nearest;
}

Error unknown_name(std::string_view kind, std::string_view path, std::string_view name,
                   std::span<const std::string_view> names) {
  const std::string_view nearest = find_nearest(name, names);
  std::string detail = fmt::format("the {} `{}{}` is not known", kind, path, name.substr(0, 64));
  if (!nearest.empty()) detail += fmt::format("; did you mean `{}{}`?", path, nearest);
  return {Code::INVALID_ARGUMENT, std::move(detail)};
}

}  // namespace latchkey::wire
