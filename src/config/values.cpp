#include "config/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "http/problem.hpp"

namespace latchkey::config {
namespace {

std::optional<std::int64_t> parse_number(const Node& node) {
  std::int64_t number = 0;
  const char* const end = node.text.data() + node.text.size();
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  const auto [stop, problem] = std::from_chars(node.text.data(), end, number);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// One kind of member for a field and for an optional field: `has` returns true if it is set.
template <class Field, class Has, class Store>
Value make_number(std::string_view name, Field& field, NumberRange range, std::string_view help, Has has, Store store) {
  return {.info = {name, help},
          .schema = fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", range.least, range.most),
          .read = [range, store](const Node& node) -> std::optional<std::string> {
            const auto number = parse_number(node);
            if (!number || *number < range.least || *number > range.most)
              return fmt::format("must be a whole number from {} to {}", range.least, range.most);
            store(*number);
            return std::nullopt;
          },
          .is_set = has,
          .write =
              [&field](std::string& json) {
                if constexpr (requires { field.has_value(); })
                  json += std::to_string(*field);
                else
                  json += std::to_string(field);
              }};
}

template <class Has, class Load, class Store>
Value make_duration(std::string_view name, DurationRange range, std::string_view help, Has has, Load load,
                    Store store) {
  return {.info = {name, help},
          .schema = R"({"type":"string","pattern":"^([0-9]+(ms|s|m|h|d|w|y))+$"})",
          .read = [range, store](const Node& node) -> std::optional<std::string> {
            const auto span = node.is_scalar() ? parse_duration(node.text) : fail(Code::INVALID_ARGUMENT, "");
            if (!span) return "must be a duration such as 250ms, 30s, 5m, 24h or 7d";
            if (*span < range.least || *span > range.most)
              return fmt::format("must be from {} to {}", format_duration(range.least), format_duration(range.most));
            store(*span);
            return std::nullopt;
          },
          .is_set = has,
          .write = [load](std::string& json) { json += '"' + format_duration(load()) + '"'; }};
}

}  // namespace

Value text(std::string_view name, std::string& field, std::string_view help, std::size_t bytes_max) {
  return {.info = {name, help},
          .schema = R"({"type":"string"})",
          .read = [&field, bytes_max](const Node& node) -> std::optional<std::string> {
            if (!node.is_scalar() || node.text.empty()) return "must be text";
            if (node.text.size() > bytes_max) return fmt::format("must have at most {} bytes", bytes_max);
            field = node.text;
            return std::nullopt;
          },
          .is_set = [&field] { return !field.empty(); },
          .write = [&field](std::string& json) { http::append_json_string(json, field); }};
}

Value texts(std::string_view name, std::vector<std::string>& field, std::string_view help) {
  return {.info = {name, help},
          .schema = R"({"type":"array","items":{"type":"string"},"minItems":1})",
          .read = [&field](const Node& node) -> std::optional<std::string> {
            const bool good = node.is_sequence() && !node.items.empty() && node.items.size() <= 1000 &&
                              std::ranges::all_of(node.items, &Node::is_scalar);
            if (!good) return "must be a list of texts";
            field.clear();
            for (const Node& item : node.items) field.push_back(item.text);
            return std::nullopt;
          },
          .is_set = [&field] { return !field.empty(); },
          .write =
              [&field](std::string& json) {
                json += '[';
                for (const std::string& item : field) {
                  if (&item != &field.front()) json += ',';
                  http::append_json_string(json, item);
                }
                json += ']';
              }};
}

Value text_map(std::string_view name, std::map<std::string, std::string>& field, std::string_view help) {
  return {.info = {name, help},
          .schema = R"({"type":"object","additionalProperties":{"type":"string"}})",
          .read = [&field](const Node& node) -> std::optional<std::string> {
            if (!node.is_mapping()) return "must be a mapping of names to texts";
            field.clear();
            for (const Member& member : node.members) {
              if (!member.value.is_scalar()) return fmt::format("the value of `{}` must be text", member.name);
              field[member.name] = member.value.text;
            }
            return std::nullopt;
          },
          .is_set = [&field] { return !field.empty(); },
          .write =
              [&field](std::string& json) {
                json += '{';
                bool first = true;
                for (const auto& [key, value] : field) {
                  if (!std::exchange(first, false)) json += ',';
                  http::append_json_string(json, key);
                  json += ':';
                  http::append_json_string(json, value);
                }
                json += '}';
              }};
}

Value flag(std::string_view name, bool& field, std::string_view help) {
  return {.info = {name, help},
          .schema = R"({"type":"boolean"})",
          .read = [&field](const Node& node) -> std::optional<std::string> {
            if (!node.is_scalar() || node.quoted || (node.text != "true" && node.text != "false"))
              return "must be true or false";
            field = node.text == "true";
            return std::nullopt;
          },
          .is_set = [&field] { return field; },
          .write = [](std::string& json) { json += "true"; }};
}

Value number(std::string_view name, std::uint32_t& field, NumberRange range, std::string_view help) {
  return make_number(
      name, field, range, help, [&field] { return field != 0; },
      [&field](std::int64_t number) { field = static_cast<std::uint32_t>(number); });
}

Value number(std::string_view name, std::optional<std::uint32_t>& field, NumberRange range, std::string_view help) {
  return make_number(
      name, field, range, help, [&field] { return field.has_value(); },
      [&field](std::int64_t number) { field = static_cast<std::uint32_t>(number); });
}

Value number(std::string_view name, std::optional<std::int32_t>& field, NumberRange range, std::string_view help) {
  return make_number(
      name, field, range, help, [&field] { return field.has_value(); },
      [&field](std::int64_t number) { field = static_cast<std::int32_t>(number); });
}

Value duration(std::string_view name, Duration& field, DurationRange range, std::string_view help) {
  return make_duration(
      name, range, help, [&field] { return field != Duration::zero(); }, [&field] { return field; },
      [&field](Duration span) { field = span; });
}

Value duration(std::string_view name, std::optional<Duration>& field, DurationRange range, std::string_view help) {
  return make_duration(
      name, range, help, [&field] { return field.has_value(); }, [&field] { return *field; },
      [&field](Duration span) { field = span; });
}

Value json(std::string_view name, std::string& field, std::string_view help) {
  return {.info = {name, help},
          .schema = "true",
          .read = [&field](const Node& node) -> std::optional<std::string> {
            field = to_json(node);
            return std::nullopt;
          },
          .is_set = [&field] { return !field.empty(); },
          .write = [&field](std::string& json) { json += field; }};
}

Value choice_of(std::string_view name, std::span<const std::string_view> names, std::string_view help,
                std::function<std::optional<std::size_t>()> get, std::function<void(std::size_t)> set) {
  return {.info = {name, help},
          .schema = fmt::format(R"({{"enum":["{}"]}})", fmt::join(names, R"(",")")),
          .read = [names, set](const Node& node) -> std::optional<std::string> {
            const auto found = std::ranges::find(names, node.text);
            if (!node.is_scalar() || found == names.end()) return fmt::format("must be {}", fmt::join(names, " or "));
            set(static_cast<std::size_t>(found - names.begin()));
            return std::nullopt;
          },
          .is_set = [get] { return get().has_value(); },
          .write = [get, names](std::string& json) { json += fmt::format("\"{}\"", names[*get()]); }};
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::uint64_t scale = unit.empty()    ? 1
                              : unit == "KiB" ? 1024
                              : unit == "MiB" ? 1024 * 1024
                              : unit == "GiB" ? 1024 * 1024 * 1024
                                              : 0;
  if (problem != std::errc{} || scale == 0 || count > (std::uint64_t{1} << 40) / scale) return std::nullopt;
  return count * scale;
}

}  // namespace latchkey::config
