// The limits of records and audit entries.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/utf8.hpp"
#include "model/limits.hpp"
#include "store/catalog_change.hpp"

namespace latchkey {
namespace {

using Fault = std::optional<Error>;

Fault invalid(std::string detail) { return Error{Code::INVALID_ARGUMENT, std::move(detail)}; }

bool is_text(std::string_view text) { return find_invalid_utf8(text) == text.npos && !text.contains('\0'); }

Fault find_name_fault(std::string_view what, std::string_view name) {
  if (name.size() > kNameBytesMax)
    return invalid(fmt::format("`{}` has {} bytes; at most {} are allowed", what, name.size(), kNameBytesMax));
  const bool is_printable = std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!is_text(name) || !is_printable)
    return invalid(fmt::format("`{}` must be UTF-8 without control characters", what));
  return std::nullopt;
}

// Names that come from tokens and hosts: any bytes, which are made readable.
Fault find_size_fault(std::string_view what, std::string_view name) {
  if (name.size() <= kKeyBytesMax) return std::nullopt;
  return invalid(fmt::format("`{}` has {} bytes; at most {} are allowed", what, name.size(), kKeyBytesMax));
}

Fault find_json_fault(std::string_view what, std::string_view json) {
  if (json.size() > kBodyBytesMax)
    return Error{Code::BODY_TOO_LARGE,
                 fmt::format("`{}` has {} bytes; at most {} are allowed", what, json.size(), kBodyBytesMax)};
  if (!is_text(json)) return invalid(fmt::format("`{}` must be UTF-8 without NUL", what));
  return std::nullopt;
}

Fault find_fault(const RecordWrite& write) {
  if (write.id.name.empty()) return invalid("`name` is missing");
  if (auto fault = find_name_fault("name", write.id.name)) return fault;
  if (auto fault = find_name_fault("tenant", write.id.tenant)) return fault;
  if (auto fault = find_name_fault("action", write.action)) return fault;
  const auto* put = std::get_if<PutRecord>(&write.write);
  if (put && put->body.empty()) return invalid("`body` is missing");
  return put ? find_json_fault("body", put->body) : std::nullopt;
}

}  // namespace

Fault find_fault(const CatalogChange& change) {
  if (change.writes.size() > kChangeWritesMax)
    return invalid(
        fmt::format("a change has {} records; at most {} are allowed", change.writes.size(), kChangeWritesMax));
  if (auto fault = find_size_fault("actor", change.actor)) return fault;
  std::set<RecordName> names;
  std::size_t bytes = 0;
  for (const RecordWrite& write : change.writes) {
    if (auto fault = find_fault(write)) return fault;
    if (!names.insert(write.id).second)
      return invalid(fmt::format("a change names the {} `{}` twice", to_string(write.id.kind), write.id.name));
    if (const auto* put = std::get_if<PutRecord>(&write.write)) bytes += put->body.size();
  }
  if (bytes <= kChangeBytesMax) return std::nullopt;
  return Error{Code::BODY_TOO_LARGE,
               fmt::format("the bodies of a change have {} bytes; at most {} are allowed", bytes, kChangeBytesMax)};
}

Fault find_fault(const std::vector<AuditEntry>& entries) {
  for (const AuditEntry& entry : entries) {
    for (const auto& [what, text] :
         {std::pair("action", &entry.action), {"subject_kind", &entry.subject_kind}, {"tenant", &entry.tenant}})
      if (auto fault = find_name_fault(what, *text)) return fault;
    if (auto fault = find_size_fault("actor", entry.actor)) return fault;
    if (auto fault = find_size_fault("subject", entry.subject)) return fault;
    if (auto fault = find_json_fault("before", entry.before)) return fault;
    if (auto fault = find_json_fault("after", entry.after)) return fault;
  }
  return std::nullopt;
}

}  // namespace latchkey
