// PgCatalogRows: the catalog's rows in the transaction of a batch. The store's thread.
#pragma once

#include "store/catalog_change.hpp"
#include "store/postgres/pg_tables.hpp"

namespace latchkey::pg {

class PgCatalogRows final : public CatalogRows {
 public:
  explicit PgCatalogRows(PgTables& tables) : tables_(tables) {}

  // Throws LockContended while another transaction changes the catalog.
  std::uint64_t lock_version() override;
  CatalogRecords find(const std::vector<RecordName>& names) override;
  void write(const std::vector<CatalogRecord>& records) override;
  void add(const std::vector<AuditEntry>& entries) override;
  Uuid next_id(Instant now) override { return tables_.next_id(now); }
  // Deletes up to `limit` entries from before that time, oldest first. Returns whether the limit was reached.
  bool purge_audit(Instant before, std::uint32_t limit);

 private:
  PgTables& tables_;
};

}  // namespace latchkey::pg
