#include "api/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "http/target.hpp"
#include "wire/json_in.hpp"

namespace latchkey::api {

Result<Query> Query::parse(std::string_view text, std::span<const std::string_view> known) {
  Query query;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = http::decode_query(pair.substr(0, equals));
    if (!name) return std::unexpected(std::move(name.error()));
    auto value = http::decode_query(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return std::unexpected(std::move(value.error()));
    if (std::ranges::find(known, *name) == known.end())
      return std::unexpected(wire::unknown_name("parameter", "", *name, known));
    if (std::ranges::find(query.parameters_, *name, &std::pair<std::string, std::string>::first) !=
        query.parameters_.end())
      return fail(Code::INVALID_ARGUMENT, fmt::format("the parameter `{}` is there twice", *name));
    query.parameters_.emplace_back(std::move(*name), std::move(*value));
  }
  return query;
}

std::string_view Query::find(std::string_view name) const {
  for (const auto& [known, value] : parameters_)
    if (known == name) return value;
  return {};
}

Result<std::uint32_t> Query::find_number(std::string_view name, std::uint32_t otherwise, std::uint32_t least,
                                         std::uint32_t most) const {
  const std::string_view text = find(name);
  if (text.empty()) return otherwise;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > most)
    return fail(Code::INVALID_ARGUMENT, fmt::format("`{}` must be a whole number from {} to {}", name, least, most));
  return number;
}

}  // namespace latchkey::api
