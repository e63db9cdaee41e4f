// The names that the catalog's enums have in the tables and on the wire.
#include "store/catalog.hpp"

#include <algorithm>
#include <array>

namespace latchkey {
namespace {

constexpr std::array<std::string_view, 8> kKinds{"function",       "function_pause", "tenant_override", "schedule",
                                                 "schedule_pause", "alert_rules",    "cache_settings",  "config_hash"};
constexpr std::array<std::string_view, 2> kSources{"config", "api"};

template <class Enum, std::size_t size>
std::optional<Enum> parse_name(const std::array<std::string_view, size>& names, std::string_view text) {
  const auto at = std::ranges::find(names, text);
  if (at == names.end()) return std::nullopt;
  return static_cast<Enum>(at - names.begin());
}

}  // namespace

std::string_view to_string(RecordKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }
std::optional<RecordKind> parse_record_kind(std::string_view text) { return parse_name<RecordKind>(kKinds, text); }

std::string_view to_string(RecordSource source) { return kSources.at(static_cast<std::size_t>(source)); }
std::optional<RecordSource> parse_record_source(std::string_view text) {
  return parse_name<RecordSource>(kSources, text);
}

}  // namespace latchkey
