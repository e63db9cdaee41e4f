// Pages of the audit log.
#include <algorithm>
#include <charconv>
#include <limits>

#include "store/catalog_change.hpp"

namespace latchkey {
namespace {

template <class T>
bool parse_number(std::string_view text, T& into) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into, 16);
  return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace

AuditPosition audit_position(const AuditEntry& entry) { return {to_ms(entry.at), uuid_counter(entry.id)}; }

std::optional<AuditPosition> read_audit_cursor(std::string_view cursor) {
  constexpr std::int64_t kNewest = std::numeric_limits<std::int64_t>::max();
  if (cursor.empty()) return AuditPosition{kNewest, kNewest};
  const std::size_t dot = cursor.find('.');
  AuditPosition position;
  if (dot == cursor.npos || !parse_number(cursor.substr(0, dot), position.at_ms) ||
      !parse_number(cursor.substr(dot + 1), position.counter) || position.counter > kNewest)
    return std::nullopt;
  return position;
}

std::string write_audit_cursor(const AuditPosition& position) {
  char text[40];
  char* at = std::to_chars(text, text + 20, position.at_ms, 16).ptr;
  *at++ = '.';
  return {text, std::to_chars(at, text + sizeof text, position.counter, 16).ptr};
}

Instant oldest_audit(const Retention& retention, Instant now) {
  return now - std::clamp(retention.audit, kAuditRetentionMin, std::max(kAuditRetentionMin, now.time_since_epoch()));
}

bool AuditPager::add(AuditEntry entry) {
  const std::size_t bytes = entry.before.size() + entry.after.size();
  if (page_.entries.size() >= query_.limit || (!page_.entries.empty() && bytes_ + bytes > query_.bytes_max)) {
    if (!page_.entries.empty()) page_.next = write_audit_cursor(audit_position(page_.entries.back()));
    return false;
  }
  bytes_ += bytes;
  page_.entries.push_back(std::move(entry));
  return true;
}

}  // namespace latchkey
