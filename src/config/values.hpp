// Values: the kinds of members that config objects have. Each function describes one member of a settings struct; the
// struct must outlive the Value. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "config/members.hpp"

namespace latchkey::config {

struct NumberRange {
  std::int64_t least = 0, most = 0;
};
struct DurationRange {
  Duration least, most;
};

Value text(std::string_view name, std::string& field, std::string_view help, std::size_t bytes_max = 4096);
Value texts(std::string_view name, std::vector<std::string>& field, std::string_view help);
Value text_map(std::string_view name, std::map<std::string, std::string>& field, std::string_view help);
Value flag(std::string_view name, bool& field, std::string_view help);
Value number(std::string_view name, std::uint32_t& field, NumberRange range, std::string_view help);
Value number(std::string_view name, std::optional<std::uint32_t>& field, NumberRange range, std::string_view help);
Value number(std::string_view name, std::optional<std::int32_t>& field, NumberRange range, std::string_view help);
Value duration(std::string_view name, Duration& field, DurationRange range, std::string_view help);
Value duration(std::string_view name, std::optional<Duration>& field, DurationRange range, std::string_view help);
// Any JSON value; the field is its text.
Value json(std::string_view name, std::string& field, std::string_view help);

// One of `names`, in the order of the enumeration's values.
Value choice_of(std::string_view name, std::span<const std::string_view> names, std::string_view help,
                std::function<std::optional<std::size_t>()> get, std::function<void(std::size_t)> set);

template <class Enum>
Value choice(std::string_view name, std::optional<Enum>& field, std::span<const std::string_view> names,
             std::string_view help) {
  return choice_of(
      name, names, help, [&field] { return field ? std::optional(static_cast<std::size_t>(*field)) : std::nullopt; },
      [&field](std::size_t value) { field = static_cast<Enum>(value); });
}

// "4KiB", "1MiB", or a number of bytes.
std::optional<std::uint64_t> parse_size(std::string_view text);

inline Value required(Value value) {
  value.info.required = true;
  return value;
}

}  // namespace latchkey::config
