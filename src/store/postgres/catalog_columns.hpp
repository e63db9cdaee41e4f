// Converts records and audit entries from and to rows of latchkey.catalog and latchkey.audit.
#pragma once

#include <vector>

#include "pg/codec.hpp"
#include "store/catalog.hpp"

namespace latchkey::pg {

// Reads record_columns (catalog.sql). Throws TablesError for a kind that only a newer version knows.
CatalogRecord read_record(const Rows& rows, int row);
// Inserts or replaces the records.
Statement put_records(const std::vector<CatalogRecord>& records);

// Reads audit_columns.
AuditEntry read_audit_entry(const Rows& rows, int row);
Statement insert_audit(const std::vector<AuditEntry>& entries);

// The parameters of list_audit, for a page from `position` on.
Params audit_params(const AuditQuery& query, std::int64_t at_ms, std::uint64_t counter);

}  // namespace latchkey::pg
