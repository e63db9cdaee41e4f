#include "store/memory/memory_catalog.hpp"

#include <ranges>

#include "store/listing.hpp"
#include "store/memory/memory_store.hpp"

namespace latchkey {

CatalogRecords MemoryCatalogRows::find(const std::vector<RecordName>& names) {
  CatalogRecords found;
  for (const RecordName& name : names)
    if (const auto at = tables_.records.find(name); at != tables_.records.end()) found.insert(*at);
  return found;
}

void MemoryCatalogRows::write(const std::vector<CatalogRecord>& records) {
  for (const CatalogRecord& record : records) {
    tables_.catalog_version = record.change;
    tables_.records.insert_or_assign(record.id, record);
  }
}

void MemoryCatalogRows::add(const std::vector<AuditEntry>& entries) {
  for (const AuditEntry& entry : entries) tables_.audit.emplace(audit_position(entry), entry);
}

bool purge_audit(MemoryTables& tables, Instant before, std::uint32_t limit) {
  std::uint32_t erased = 0;
  while (erased < limit && !tables.audit.empty() && tables.audit.begin()->second.at < before) {
    tables.audit.erase(tables.audit.begin());
    ++erased;
  }
  return limit > 0 && erased == limit;
}

Result<ChangeReply> MemoryStore::write_records(const CatalogChange& change) {
  if (auto fault = find_fault(change)) return std::unexpected(*std::move(fault));
  const std::lock_guard lock(mutex_);
  MemoryCatalogRows rows(tables_);
  return apply_change(rows, change, clock_.now());
}

Result<std::vector<CatalogRecord>> MemoryStore::list_records(const RecordQuery& query) {
  const std::lock_guard lock(mutex_);
  std::vector<CatalogRecord> found;
  for (const auto& [name, record] : tables_.records)
    if (is_listed(record, query)) found.push_back(record);
  return found;
}

Result<std::optional<CatalogRecord>> MemoryStore::find_record(const RecordName& id) {
  const std::lock_guard lock(mutex_);
  const auto at = tables_.records.find(id);
  if (at == tables_.records.end() || at->second.is_deleted) return std::nullopt;
  return at->second;
}

Result<std::uint64_t> MemoryStore::catalog_version() {
  const std::lock_guard lock(mutex_);
  return tables_.catalog_version;
}

void MemoryStore::add_audit(std::vector<AuditEntry> entries, Done<std::monostate> done) {
  if (auto fault = find_fault(entries)) return done(std::unexpected(*std::move(fault)));
  {
    const std::lock_guard lock(mutex_);
    MemoryCatalogRows rows(tables_);
    apply_audit(rows, std::move(entries), clock_.now());
  }
  done(std::monostate{});
}

Result<AuditPage> MemoryStore::list_audit(const AuditQuery& query) {
  const auto from = read_audit_cursor(query.cursor);
  if (!from) return std::unexpected(bad_cursor());
  const std::lock_guard lock(mutex_);
  AuditPager pager(query);
  for (const auto& [position, entry] : tables_.audit | std::views::reverse)
    if (position < *from && is_listed(entry, query) && !pager.add(entry)) break;
  return pager.finish();
}

}  // namespace latchkey
