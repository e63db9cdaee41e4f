// The catalog's rows in memory. Used under the store's mutex.
#pragma once

#include "store/memory/memory_tables.hpp"

namespace latchkey {

class MemoryCatalogRows final : public CatalogRows {
 public:
  explicit MemoryCatalogRows(MemoryTables& tables) : tables_(tables) {}

  std::uint64_t lock_version() override { return tables_.catalog_version; }
  CatalogRecords find(const std::vector<RecordName>& names) override;
  void write(const std::vector<CatalogRecord>& records) override;
  void add(const std::vector<AuditEntry>& entries) override;
  Uuid next_id(Instant now) override { return tables_.next_id(now); }

 private:
  MemoryTables& tables_;
};

// Deletes up to `limit` entries from before that time, oldest first. Returns whether the limit was reached.
bool purge_audit(MemoryTables& tables, Instant before, std::uint32_t limit);

}  // namespace latchkey
