// The rows of lk_catalog and lk_audit, on the writer's connection inside its transaction.
#pragma once

#include "store/catalog_change.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

std::uint64_t read_catalog_version(Database& database);

class SqliteCatalogRows final : public CatalogRows {
 public:
  explicit SqliteCatalogRows(SqliteTables& tables) : tables_(tables) {}

  std::uint64_t lock_version() override { return tables_.state().catalog; }
  CatalogRecords find(const std::vector<RecordName>& names) override;
  void write(const std::vector<CatalogRecord>& records) override;
  void add(const std::vector<AuditEntry>& entries) override;
  Uuid next_id(Instant now) override { return tables_.next_id(now); }
  // Deletes up to `limit` entries from before that time, oldest first. Returns whether the limit was reached.
  bool purge_audit(Instant before, std::uint32_t limit);

 private:
  SqliteTables& tables_;
};

}  // namespace latchkey
