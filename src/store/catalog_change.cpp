#include "store/catalog_change.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace latchkey {
namespace {

bool exists(const CatalogRecord* record) { return record && !record->is_deleted; }

// Whether the write would leave the record as it is.
bool changes_nothing(const CatalogRecord* record, const RecordWrite& write) {
  const auto* put = std::get_if<PutRecord>(&write.write);
  if (!put) return !exists(record);
  return exists(record) && record->source == put->source && record->body == put->body &&
         record->is_retired == put->is_retired;
}

// Whether the record may be as the write left it when it was sent before: the caller's reply was lost.
bool may_be_repeat(const CatalogRecord* record, std::uint64_t expected, const std::string& actor) {
  return record && record->updated_by == actor && (expected == 0 || record->version == expected + 1);
}

bool is_as_expected(const CatalogRecord* record, const RecordWrite& write, const std::string& actor) {
  if (!write.expected) return true;
  if (*write.expected == (exists(record) ? record->version : 0)) return true;
  return changes_nothing(record, write) && may_be_repeat(record, *write.expected, actor);
}

CatalogRecord apply_write(const CatalogRecord* record, const RecordWrite& write) {
  CatalogRecord next{.id = write.id, .version = record ? record->version + 1 : 1};
  if (const auto* put = std::get_if<PutRecord>(&write.write)) {
    next.source = put->source;
    next.body = put->body;
    next.is_retired = put->is_retired;
  } else {
    next.source = record->source;
    next.is_deleted = true;
  }
  return next;
}

AuditEntry describe(const CatalogRecord* before, const CatalogRecord& after, const std::string& action) {
  return {.id = {},
          .at = after.updated_at,
          .actor = after.updated_by,
          .action = action,
          .subject_kind = std::string(to_string(after.id.kind)),
          .subject = after.id.name,
          .tenant = after.id.tenant,
          .before = before ? before->body : "",
          .after = after.body};
}

}  // namespace

ChangeDecision decide_change(const CatalogChange& change, const CatalogRecords& current, std::uint64_t catalog_version,
                             Instant now) {
  const std::string actor = make_readable(change.actor);
  AcceptedChange accepted{.reply = {.catalog_version = catalog_version, .versions = {}}, .records = {}, .audit = {}};
  for (const RecordWrite& write : change.writes) {
    const auto found = current.find(write.id);
    const CatalogRecord* const record = found == current.end() ? nullptr : &found->second;
    if (!is_as_expected(record, write, actor)) return VersionConflict{write.id, exists(record) ? record->version : 0};
    if (changes_nothing(record, write)) {
      accepted.reply.versions.push_back(record ? record->version : 0);
      continue;
    }
    CatalogRecord next = apply_write(record, write);
    next.change = catalog_version + 1;
    next.updated_at = now;
    next.updated_by = actor;
    accepted.reply.versions.push_back(next.version);
    if (!write.action.empty()) accepted.audit.push_back(describe(record, next, write.action));
    accepted.records.push_back(std::move(next));
  }
  if (!accepted.records.empty()) accepted.reply.catalog_version += 1;
  return accepted;
}

ChangeReply apply_change(CatalogRows& rows, const CatalogChange& change, Instant now) {
  std::vector<RecordName> names;
  for (const RecordWrite& write : change.writes) names.push_back(write.id);
  const std::uint64_t version = rows.lock_version();
  ChangeDecision decision = decide_change(change, rows.find(names), version, now);
  if (auto* conflict = std::get_if<VersionConflict>(&decision)) return std::move(*conflict);
  auto& accepted = std::get<AcceptedChange>(decision);
  if (!accepted.records.empty()) {
    for (AuditEntry& entry : accepted.audit) entry.id = rows.next_id(now);
    rows.write(accepted.records);
    if (!accepted.audit.empty()) rows.add(accepted.audit);
  }
  return std::move(accepted.reply);
}

void apply_audit(CatalogRows& rows, std::vector<AuditEntry> entries, Instant now) {
  if (entries.empty()) return;
  for (AuditEntry& entry : entries) {
    entry.id = rows.next_id(now);
    entry.at = now;
    entry.actor = make_readable(entry.actor);
    entry.subject = make_readable(entry.subject);
  }
  rows.add(entries);
}

bool is_listed(const CatalogRecord& record, const RecordQuery& query) {
  return record.change > query.changed_after && (query.with_deleted || !record.is_deleted) &&
         (query.kinds.empty() || std::ranges::find(query.kinds, record.id.kind) != query.kinds.end());
}

bool is_listed(const AuditEntry& entry, const AuditQuery& query) {
  const auto matches = [](const std::string& wanted, const std::string& text) {
    return wanted.empty() || wanted == text;
  };
  return (!query.tenant || entry.tenant == *query.tenant) && (!query.since || entry.at >= *query.since) &&
         matches(query.actor, entry.actor) && matches(query.subject_kind, entry.subject_kind) &&
         matches(query.subject, entry.subject);
}

}  // namespace latchkey
